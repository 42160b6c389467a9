package queuetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

var patternCases = []conformanceCase{
	{"queues that match a pattern share its handlers in turns, each under its own limits", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[string]("hook", falldue.KindConfig{})
		q := f.queue(t, falldue.Config{ShutdownTimeout: -1, MaxPrefetch: -1, Queues: map[string]falldue.QueueConfig{
			"tenant:*": {Concurrency: 3, Limits: []falldue.Limit{falldue.AtMost(2)}}, "tenant:vip": {Concurrency: 1},
		}})
		elsewhere := f.queueOn(t, f.open(t), falldue.Config{})
		runs := newLimitedRuns()
		falldue.Handle(q, k, runs.handle)
		in := func(queue string) falldue.EnqueueOptions { return falldue.EnqueueOptions{Queue: queue} }
		enqueueSame(t, elsewhere, k, 4, "big", in("tenant:big")) // before the worker starts
		startWorker(t, q)
		for range 2 {
			receive(t, runs.started, "as many tasks as the queue's limit allows")
		}
		enqueueSame(t, elsewhere, k, 2, "small", in("tenant:small")) // while it runs
		enqueueSame(t, elsewhere, k, 1, "vip", in("tenant:vip"))
		enqueueSame(t, elsewhere, k, 1, "other", in("other"))
		for range 2 {
			receive(t, runs.started, "a task of a new queue, and one of a queue with handlers of its own")
		}
		for name, want := range map[string]int64{"big": 2, "small": 1, "vip": 1, "other": 0} {
			if n := runs.gauge(name).now.Load(); n != want {
				t.Errorf("%d tasks of %s run, want %d", n, name, want)
			}
		}
		workers, err := ops.New(elsewhere).Workers(t.Context())
		if err != nil || len(workers) != 1 {
			t.Fatal(workers, err)
		}
		for queue, want := range map[string]int{"tenant:big": 3, "tenant:small": 3, "tenant:vip": 1, "tenant:*": 3} {
			if on, works := workers[0].Queue(queue); on.Concurrency != want || !works {
				t.Errorf("the worker has %d handlers for queue %s, want %d", on.Concurrency, queue, want)
			}
		}
		if workers[0].Handles("other", "hook") {
			t.Error("the worker says that it works on a queue that does not match")
		}
		tasks, err := ops.New(elsewhere).Tasks(t.Context(), ops.Filter{Queue: "tenant:big", Phase: falldue.PhaseLimited})
		if err != nil || len(tasks.Tasks) != 2 {
			t.Fatalf("%d tasks of tenant:big wait for its limit, error %v; want 2", len(tasks.Tasks), err)
		}
		why, err := ops.New(elsewhere).Why(t.Context(), tasks.Tasks[0].ID)
		if err != nil || !slices.ContainsFunc(why.Conditions, func(c ops.Condition) bool {
			return !c.Holds() && strings.Contains(c.Describe(why.Task), "AtMost(2) of queue tenant:big")
		}) {
			t.Errorf("why: %+v, error %v", why.Conditions, err)
		}
		close(runs.release)
		for range 3 {
			receive(t, runs.started, "the other tasks")
		}
		for name, most := range map[string]int64{"tenant:big": 2, "tenant:vip": 1, "all": 4} {
			if got := runs.gauge(name).most.Load(); got > most {
				t.Errorf("%d tasks of %s ran concurrently; the limit is %d", got, name, most)
			}
		}
	}},
	{"a pattern has delayed and paused tasks of queues that appear later", func(t *testing.T, f *fixture) {
		ran := make(chan string, 10)
		k := falldue.NewKind[string]("note", falldue.KindConfig{})
		handle := func(_ context.Context, task falldue.Task[string]) error { ran <- task.Args; return nil }
		q := f.queue(t, falldue.Config{Queues: map[string]falldue.QueueConfig{"*": {}}})
		elsewhere := f.queueOn(t, f.open(t), falldue.Config{})
		falldue.Handle(q, k, handle)
		paused := falldue.Subject{Queue: "b"}
		if err := elsewhere.Pause(t.Context(), paused); err != nil { // a worker that runs reads it later
			t.Fatal(err)
		}
		startWorker(t, q)
		for queue, delay := range map[string]time.Duration{"a": 300 * time.Millisecond, "b": 0, "c": 0} {
			enqueue(t, elsewhere, k, queue, falldue.EnqueueOptions{Queue: queue, Delay: delay})
		}
		got := []string{receive(t, ran, "a task"), receive(t, ran, "another task")}
		if slices.Sort(got); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("tasks of queues %v ran, want a and c", got)
		}
		if err := elsewhere.Resume(t.Context(), paused); err != nil {
			t.Fatal(err)
		}
		receive(t, ran, "the task of the queue that was paused")
	}},
}
