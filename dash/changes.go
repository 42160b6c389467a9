package dash

import (
	"cmp"
	"time"

	"github.com/falldue/falldue/ops"
)

// shownDeeds is how many actions the page of changes shows.
const shownDeeds = 200

// changesView is what the page of changes shows.
type changesView struct {
	Deeds   []ops.Deed // newest first
	Now     time.Time
	Age     time.Duration
	Trouble *trouble
}

func changesPage(in *request) (page, error) {
	ctx := in.r.Context()
	var p reading[ops.Pulse]
	var deeds reading[[]ops.Deed]
	together(func() { p = in.h.reads.pulse.get(ctx) }, func() { deeds = in.h.reads.audit.get(ctx) })
	v := changesView{Deeds: deeds.Value, Now: in.h.now(p), Age: deeds.Age, Trouble: troubleOf(cmp.Or(p.Err, deeds.Err))}
	return page{Title: "Changes", Nav: "changes", Live: true, Regions: []region{
		{ID: "force", Template: "in-force", Data: inForce{Pulse: p.Value, Now: v.Now, Age: p.Age}},
		{ID: "changes", Template: "changes", Data: v},
	}}, nil
}
