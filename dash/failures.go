package dash

import (
	"slices"

	"github.com/falldue/falldue/ops"
)

// failuresView is what the page of failures shows.
type failuresView struct {
	reading[ops.Failures]
	Groups  []ops.FailureGroup
	Kind    string
	Kinds   []string
	Trouble *trouble
}

func failuresPage(in *request) (page, error) {
	f := in.h.reads.failures.get(in.r.Context())
	v := failuresView{reading: f, Kind: in.query.Get("kind"), Trouble: troubleOf(f.Err)}
	for _, g := range f.Value.Groups {
		if !slices.Contains(v.Kinds, g.Kind) {
			v.Kinds = append(v.Kinds, g.Kind)
		}
		if v.Kind == "" || g.Kind == v.Kind {
			v.Groups = append(v.Groups, g)
		}
	}
	slices.Sort(v.Kinds)
	return page{Title: "Failures", Nav: "failures", Live: true, Regions: []region{{ID: "groups", Template: "failures", Data: v}}}, nil
}
