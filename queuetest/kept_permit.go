package queuetest

import (
	"context"
	"testing"

	"github.com/falldue/falldue"
)

var keptPermitCases = []conformanceCase{
	{"a task that is cancelled or deleted while it runs counts under its limits and in its sequence until its handler has ended", func(t *testing.T, f *fixture) {
		for name, end := range map[string]func(q *falldue.Queue, id int64) error{
			"cancelled": func(q *falldue.Queue, id int64) error { return q.Cancel(t.Context(), id) },
			"deleted": func(q *falldue.Queue, id int64) error {
				return q.Delete(t.Context(), id, falldue.DeleteOptions{Running: true})
			},
		} {
			for form, limit := range map[string]falldue.Limit{"limited": falldue.AtMost(1), "ordered": falldue.InOrder()} {
				checkKept(t, f, falldue.NewKind[string](name+"."+form, falldue.KindConfig{Limits: []falldue.Limit{limit}}), end)
			}
		}
	}},
}

// checkKept runs the first of two tasks of a kind on one of two workers, ends its claim from
// a third queue, and wants the second task to run only when the first handler has ended.
func checkKept(t *testing.T, f *fixture, k falldue.Kind[string], end func(q *falldue.Queue, id int64) error) {
	t.Helper()
	started, ending, release := make(chan int64, 10), make(chan int64, 10), make(chan struct{})
	probe, probed := falldue.NewKind[string]("probe", falldue.KindConfig{}), make(chan string, 10)
	var workers []*falldue.Queue
	var stop []func()
	for range 2 {
		q := f.queueOn(t, f.open(t), falldue.Config{ShutdownTimeout: -1, Queues: map[string]falldue.QueueConfig{"default": {}, "probes": {}}})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[string]) error {
			started <- task.ID
			if task.Args == "first" {
				<-ctx.Done()
				ending <- task.ID
				<-release
			}
			return nil
		})
		falldue.Handle(q, probe, func(context.Context, falldue.Task[string]) error { probed <- ""; return nil })
		workers, stop = append(workers, q), append(stop, startWorker(t, q))
	}
	operator := f.queueOn(t, f.open(t), falldue.Config{})
	first := enqueue(t, operator, k, "first", falldue.EnqueueOptions{Key: "a"})
	if id := receive(t, started, "the first task"); id != first {
		t.Fatalf("task %d runs, want %d", id, first)
	}
	second := enqueue(t, operator, k, "second", falldue.EnqueueOptions{Key: "a"})
	if err := end(operator, first); err != nil {
		t.Fatal(err)
	}
	receive(t, ending, "the end of the first task's context")
	for range 3 {
		for _, q := range workers {
			q.Wake()
		}
		runProbe(t, operator, probe, probed)
	}
	select {
	case id := <-started:
		close(release)
		t.Fatalf("%s: task %d runs alongside the handler of task %d", k.Name(), id, first)
	default:
	}
	close(release)
	if id := receive(t, started, "the second task"); id != second {
		t.Errorf("%s: task %d runs, want %d", k.Name(), id, second)
	}
	for _, s := range stop {
		s()
	}
}
