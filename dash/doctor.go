package dash

import (
	"time"

	"github.com/falldue/falldue/ops"
)

// doctorView is what the page of checks shows.
type doctorView struct {
	Findings []ops.Finding
	Ran      bool
	Age      time.Duration
	Trouble  *trouble
	Fine     int
	Worst    ops.Level
}

// doctorPage shows the last findings. It runs the checks only if the user asks for them and the findings are older than
// a minute.
func doctorPage(in *request) (page, error) {
	r, _, _ := in.h.reads.findings.now()
	if in.query.Get("run") != "" {
		r = in.h.reads.findings.get(in.r.Context())
	}
	v := doctorView{Ran: r.Known || r.Err != nil, Age: r.Age, Trouble: troubleOf(r.Err)}
	for _, level := range []ops.Level{ops.Broken, ops.Attention, ops.Unchecked, ops.Fine} {
		for _, f := range r.Value {
			if f.Level == level {
				v.Findings, v.Worst = append(v.Findings, f), max(v.Worst, f.Level)
			}
			if f.Level == level && level == ops.Fine {
				v.Fine++
			}
		}
	}
	return page{Title: "Doctor", Nav: "doctor", Regions: []region{{ID: "doctor", Template: "doctor", Data: v}}}, nil
}
