package dash

import (
	"cmp"
	"time"

	"github.com/falldue/falldue/ops"
)

// limitsView is what the page of limits shows.
type limitsView struct {
	Limits  []ops.Limit
	Age     time.Duration
	Trouble *trouble
}

func limitsPage(in *request) (page, error) {
	ctx := in.r.Context()
	p, limits := in.h.reads.pulse.get(ctx), in.h.reads.limits.get(ctx)
	v := limitsView{Limits: limits.Value, Age: limits.Age, Trouble: troubleOf(cmp.Or(p.Err, limits.Err))}
	return page{Title: "Limits", Nav: "queues", Live: true, Regions: []region{{ID: "limits", Template: "limits", Data: v}}}, nil
}
