package queuetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

var historyCases = []conformanceCase{
	{"the history has each run once, by how it ended, whichever worker ran it, and a worker without history adds nothing", func(t *testing.T, f *fixture) {
		kind := falldue.NewKind[string]("storied", falldue.KindConfig{DoneRetention: time.Hour, Policy: parsePolicy(t, "delay 0; attempts 2")})
		one, other, silent := f.queue(t, falldue.Config{}), f.queueOn(t, f.open(t), falldue.Config{}), f.queueOn(t, f.open(t), falldue.Config{NoHistory: true})
		work := func(q *falldue.Queue, tasks map[string]falldue.State) {
			falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
				switch {
				case task.Args == "fails":
					return errFlaky
				case task.Args == "snoozes" && task.Fence == 1:
					return falldue.Snooze(0)
				}
				return nil
			})
			stop := startWorker(t, q)
			for args, end := range tasks {
				waitForState(t, q, enqueue(t, q, kind, args), end)
			}
			stop() // which writes the sums of the last minute
		}
		work(one, map[string]falldue.State{"succeeds": falldue.StateDone, "fails": falldue.StateDead})
		work(other, map[string]falldue.State{"snoozes": falldue.StateDone, "succeeds": falldue.StateDone})
		work(silent, map[string]falldue.State{"succeeds": falldue.StateDone})
		for _, step := range []time.Duration{0, 10 * time.Minute, time.Hour} {
			o := ops.New(silent)
			now, err := o.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list, err := o.History(t.Context(), ops.HistoryFilter{From: now.Add(-2 * time.Hour), Step: step, ByKind: true})
			if err != nil {
				t.Fatal(err)
			}
			var total ops.Span
			for _, s := range list {
				if s.Queue != falldue.DefaultQueue || s.Kind != "storied" || s.At.After(now) || now.Sub(s.At) > step+time.Hour {
					t.Errorf("a span of %v is %+v", step, s)
				}
				total.Started, total.Done, total.Failed, total.Dead, total.Snoozed = total.Started+s.Started, total.Done+s.Done, total.Failed+s.Failed, total.Dead+s.Dead, total.Snoozed+s.Snoozed
				total.Cancelled, total.Lost = total.Cancelled+s.Cancelled, total.Lost+s.Lost
				total.Run, total.Lag = total.Run.Add(s.Run), total.Lag.Add(s.Lag)
			}
			if total.Started != 6 || total.Done != 3 || total.Failed != 1 || total.Dead != 1 || total.Snoozed != 1 || total.Ended() != 6 {
				t.Errorf("by %v, the sums are %+v", step, total)
			}
			if total.Run.Count() != 6 || total.Lag.Count() != 6 || total.Run.Max <= 0 || total.Run.Quantile(0.5) > total.Run.Max || total.Lag.Max > time.Hour {
				t.Errorf("by %v, the times are %+v and %+v", step, total.Run, total.Lag)
			}
			if list, err := o.History(t.Context(), ops.HistoryFilter{From: now.Add(-2 * time.Hour), Step: step, Queue: "another"}); err != nil || len(list) != 0 {
				t.Errorf("the history of another queue is %+v (error %v)", list, err)
			}
		}
		if _, err := ops.New(one).History(t.Context(), ops.HistoryFilter{Step: time.Second}); err == nil {
			t.Error("there is a history by the second")
		}
	}},
	{"a waiting task that is to run now keeps its attempts and its policy, and is refused if it runs or is finished", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		o := ops.New(q)
		kind := falldue.NewKind[string]("now", falldue.KindConfig{DoneRetention: time.Hour, Policy: parsePolicy(t, "delay 9h; attempts 6")})
		began, goOn := make(chan int64, 1), make(chan struct{})
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
			switch {
			case task.Args == "hangs":
				began <- task.ID
				<-goOn
			case task.Args == "fails" && task.Attempt < 3:
				return errFlaky
			case task.Args == "snoozes" && task.Fence == 1:
				return falldue.Snooze(9 * time.Hour)
			}
			return nil
		})
		startWorker(t, q)
		failing := enqueue(t, q, kind, "fails")
		for attempt := 1; attempt < 3; attempt++ {
			waitFor(t, q, failing, "failed", func(i falldue.TaskInfo) bool { return i.Attempts == attempt && i.ClaimedBy == "" && i.LastError != "" })
			if err := o.RunNow(t.Context(), failing); err != nil {
				t.Fatal(err)
			}
		}
		if info := waitForState(t, q, failing, falldue.StateDone); info.Attempts != 3 {
			t.Errorf("it ended as %+v, want 3 attempts", info)
		}
		later := enqueue(t, q, kind, "succeeds", falldue.EnqueueOptions{Delay: 9 * time.Hour})
		snoozing := enqueue(t, q, kind, "snoozes")
		waitForState(t, q, snoozing, falldue.StateSnoozed)
		report, err := o.RunNowMany(t.Context(), ops.Filter{Kind: "now"}, ops.BulkOptions{})
		if err != nil || report.Changed != 2 || report.Failed != 0 {
			t.Errorf("the report is %+v (error %v), want 2 tasks", report, err)
		}
		waitForState(t, q, later, falldue.StateDone)
		waitForState(t, q, snoozing, falldue.StateDone)
		if err := o.RunNow(t.Context(), later); !errors.Is(err, falldue.ErrWrongState) {
			t.Errorf("a done task runs now: %v", err)
		}
		if err := o.RunNow(t.Context(), 1<<40); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("a task that does not exist runs now: %v", err)
		}
		hanging := enqueue(t, q, kind, "hangs")
		receive(t, began, "a handler that hangs")
		if err := o.RunNow(t.Context(), hanging); !errors.Is(err, falldue.ErrRunning) {
			t.Errorf("a task that runs is to run now: %v", err)
		}
		close(goOn)
		waitForState(t, q, hanging, falldue.StateDone)
	}},
}
