package dash

import (
	"time"

	"github.com/falldue/falldue/ops"
)

// workersView is what the page of workers shows.
type workersView struct {
	Pulse   ops.Pulse
	Now     time.Time
	Age     time.Duration
	Refused []ops.RefusedOverride
	Pauses  []ops.RefusedPause
	Differ  []ops.KindReleases
	Trouble *trouble
}

// Rate is the rate of a worker.
func (v workersView) Rate(w ops.Worker) ops.Rate { return v.Pulse.Rates[w.ID] }

func workersPage(in *request) (page, error) {
	p := in.h.reads.pulse.get(in.r.Context())
	v := workersView{Pulse: p.Value, Now: p.Value.At, Age: p.Age, Refused: ops.RefusedOverrides(p.Value.Workers), Pauses: ops.RefusedPauses(p.Value.Workers), Trouble: troubleOf(p.Err)}
	kinds := ops.KindPolicies(p.Value.Workers)
	for _, kind := range sorted(kinds) {
		if len(kinds[kind]) > 1 {
			v.Differ = append(v.Differ, ops.KindReleases{Kind: kind, Policies: kinds[kind]})
		}
	}
	return page{Title: "Workers", Nav: "workers", Live: true, Regions: []region{{ID: "workers", Template: "workers", Data: v}}}, nil
}
