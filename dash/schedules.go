package dash

import (
	"time"

	"github.com/falldue/falldue/periodic"
)

// schedulesView is what the page of schedules shows.
type schedulesView struct {
	List    []periodic.Info
	Now     time.Time
	Age     time.Duration
	Trouble *trouble
}

func schedulesPage(in *request) (page, error) {
	r := in.h.reads.schedules.get(in.r.Context())
	v := schedulesView{List: r.Value, Age: r.Age, Trouble: troubleOf(r.Err)}
	if len(v.List) > 0 {
		v.Now = v.List[0].Now
	}
	return page{Title: "Schedules", Nav: "schedules", Live: true, Regions: []region{{ID: "schedules", Template: "schedules", Data: v}}}, nil
}

// changeSchedule pauses, resumes, triggers or removes a schedule.
func changeSchedule(in *request) (done, error) {
	name, do := in.r.PostFormValue("name"), in.r.PostFormValue("do")
	d := done{to: "schedules?done=schedule", entry: Entry{Target: Target{Name: name}, Detail: do, Why: in.r.PostFormValue("why")}}
	if err := in.need(Schedule, d.entry.Target); err != nil {
		return d, err
	}
	ctx, q := in.r.Context(), in.h.queue
	switch do {
	case "pause":
		return d, periodic.Pause(ctx, q, name, in.note())
	case "resume":
		return d, periodic.Resume(ctx, q, name)
	case "trigger":
		id, err := periodic.Trigger(ctx, q, name)
		d.to, d.entry.Target.ID = "schedules?done=triggered", id
		return d, err
	case "remove":
		return d, periodic.Remove(ctx, q, name)
	}
	return d, mistake("do must be pause, resume, trigger or remove")
}
