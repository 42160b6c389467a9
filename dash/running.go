package dash

import (
	"time"

	"github.com/falldue/falldue/ops"
)

// shownRunning is how many running tasks the page shows.
const shownRunning = 200

// runningView is what the page of running tasks shows.
type runningView struct {
	Tasks   []ops.RunningTask // the longest running first
	Running int               // handlers
	Now     time.Time
	Age     time.Duration
	Trouble *trouble
}

func runningPage(in *request) (page, error) {
	p := in.h.reads.pulse.get(in.r.Context())
	v := runningView{Tasks: ops.LongestRunning(p.Value.Workers), Running: p.Value.Running(), Now: in.h.now(p), Age: p.Age, Trouble: troubleOf(p.Err)}
	v.Tasks = v.Tasks[:min(len(v.Tasks), shownRunning)]
	return page{Title: "Running", Nav: "running", Live: true, Regions: []region{{ID: "running", Template: "running", Data: v}}}, nil
}
