package queuetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/ops"
)

var phaseCases = []conformanceCase{
	{"the phase of a task says what it waits for", func(t *testing.T, f *fixture) {
		queues := map[string]falldue.QueueConfig{"default": {}, "other": {}}
		q, stranger := f.queue(t, falldue.Config{Queues: queues, DeadRetention: time.Hour, DoneRetention: time.Hour}), f.queueOn(t, f.open(t), falldue.Config{})
		want := map[int64]falldue.Phase{}
		ran := make(chan int64, 20)
		end := make(chan struct{})
		handle := func(name string, cfg falldue.KindConfig, result func() error) falldue.Kind[noteArgs] {
			k := falldue.NewKind[noteArgs](name, cfg)
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
				ran <- task.ID
				return result()
			})
			return k
		}
		hour := parsePolicy(t, "delay 1h; attempts 5")
		ends := handle("ends", falldue.KindConfig{}, func() error { return nil })
		fails := handle("fails", falldue.KindConfig{Policy: hour}, func() error { return errFlaky })
		dies := handle("dies", falldue.KindConfig{}, func() error { return falldue.Discard(errFlaky) })
		snoozes := handle("snoozes", falldue.KindConfig{}, func() error { return falldue.Snooze(time.Hour) })
		runs := handle("runs", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(1)}}, func() error { <-end; return nil })
		lost := handle("lost", falldue.KindConfig{Policy: hour}, func() error { <-end; return nil })
		own := parsePolicy(t, "delay 2h; attempts 7")
		for _, task := range []struct {
			kind  falldue.Kind[noteArgs]
			opts  falldue.EnqueueOptions
			phase falldue.Phase
		}{
			{ends, falldue.EnqueueOptions{}, falldue.PhaseDone}, {fails, falldue.EnqueueOptions{}, falldue.PhaseBackingOff}, {fails, falldue.EnqueueOptions{Policy: own}, falldue.PhaseBackingOff},
			{dies, falldue.EnqueueOptions{}, falldue.PhaseDead}, {snoozes, falldue.EnqueueOptions{}, falldue.PhaseSnoozed}, {runs, falldue.EnqueueOptions{}, falldue.PhaseRunning},
			{lost, falldue.EnqueueOptions{}, falldue.PhaseBackingOff},
		} {
			want[enqueue(t, q, task.kind, noteArgs{}, task.opts)] = task.phase
		}
		stop := startWorker(t, q)
		for range want {
			receive(t, ran, "each task to run")
		}
		f.endLeases(t, "kind = 'lost'") // as if its worker had died
		for id, phase := range want {
			if info := readTask(t, q, id); phase != falldue.PhaseRunning && info.Kind != "lost" {
				waitFor(t, q, id, "settled", func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" })
			}
		}
		unhandled := falldue.NewKind[noteArgs]("unhandled", falldue.KindConfig{})
		want[enqueue(t, q, unhandled, noteArgs{})] = falldue.PhaseDue
		want[enqueue(t, q, ends, noteArgs{}, falldue.EnqueueOptions{Delay: time.Hour})] = falldue.PhaseScheduled
		want[enqueue(t, q, runs, noteArgs{})] = falldue.PhaseLimited
		if err := q.Pause(t.Context(), falldue.Subject{Key: "customer 7"}); err != nil {
			t.Fatal(err)
		}
		want[enqueue(t, q, unhandled, noteArgs{}, falldue.EnqueueOptions{Key: "customer 7"})] = falldue.PhasePaused
		ids := enqueueFlow(t, q, flow.Batch(unhandled.Params(noteArgs{})).Then(unhandled.Params(noteArgs{})))
		want[ids[0]], want[ids[1]] = falldue.PhaseDue, falldue.PhaseBlocked
		cancelled := enqueue(t, q, unhandled, noteArgs{})
		if err := q.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		want[cancelled] = falldue.PhaseCancelled

		page, err := ops.New(q).Tasks(t.Context(), ops.Filter{})
		if err != nil || len(page.Tasks) != len(want) || page.More {
			t.Fatalf("found %d of %d tasks, error %v", len(page.Tasks), len(want), err)
		}
		byPhase := map[falldue.Phase][]int64{}
		for _, task := range page.Tasks {
			if task.Phase != want[task.ID] {
				t.Errorf("task %d of kind %s is %s, want %s", task.ID, task.Kind, task.Phase, want[task.ID])
			}
			byPhase[want[task.ID]] = append(byPhase[want[task.ID]], task.ID)
		}
		for phase, ids := range byPhase {
			page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Phase: phase})
			var got []int64
			for _, task := range page.Tasks {
				got = append(got, task.ID)
			}
			if err != nil || !slices.Equal(got, ids) {
				t.Errorf("the filter finds %v that are %s, error %v, want %v", got, phase, err, ids)
			}
		}
		// Another process knows policies and limits from workers. When there are none, it does
		// not know when a failed task is due again.
		phasesOf := func(kind string) (list []falldue.Phase) {
			page, err := ops.New(stranger).Tasks(t.Context(), ops.Filter{Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range page.Tasks {
				list = append(list, task.Phase)
			}
			return list
		}
		if got := append(phasesOf("fails"), phasesOf("runs")...); !slices.Equal(got, []falldue.Phase{falldue.PhaseBackingOff, falldue.PhaseBackingOff, falldue.PhaseRunning, falldue.PhaseLimited}) {
			t.Errorf("another process finds tasks that are %v", got)
		}
		close(end)
		stop()
		if got := phasesOf("fails"); !slices.Equal(got, []falldue.Phase{falldue.PhaseUnknownPolicy, falldue.PhaseBackingOff}) {
			t.Errorf("without a worker another process finds tasks that are %v; want one of an unknown policy, and one backing off under its own", got)
		}
		atOnce, err := backoff.ParseOverride("0 * original")
		if err != nil {
			t.Fatal(err)
		}
		if err := ops.New(q).SetPolicy(t.Context(), falldue.Subject{Kind: "fails"}, atOnce); err != nil {
			t.Fatal(err)
		}
		if page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Phase: falldue.PhaseDue, Kind: "fails"}); err != nil || len(page.Tasks) != 1 {
			t.Errorf("under a policy without delays %d tasks are due, error %v; want one", len(page.Tasks), err)
		}
	}},
}
