package queuetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/many"
)

var manyCases = []conformanceCase{
	{"a handler for many tasks gets the due ones together, each ends in its own way, and waiting ones are released when the worker stops", func(t *testing.T, f *fixture) {
		const most = 4
		q := f.queue(t, falldue.Config{Concurrency: most, DoneRetention: time.Hour})
		k := falldue.NewKind[int]("together", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h; attempts 3")})
		sizes, began := make(chan int, 10), make(chan int64, 10)
		notes := func(next falldue.HandlerFunc) falldue.HandlerFunc {
			return func(ctx context.Context, run *falldue.Run) error {
				began <- run.ID
				return next(ctx, run)
			}
		}
		many.Handle(q, k, many.Config[int]{Most: most, Wait: time.Hour}, func(_ context.Context, b *many.Batch[int]) error {
			sizes <- len(b.Tasks)
			for i, task := range b.Tasks {
				b.Errs[i] = []error{nil, errFlaky, falldue.Snooze(time.Hour), falldue.Discard(errors.New("never"))}[task.Args]
			}
			return nil
		}, notes)
		receipts, err := k.EnqueueMany(t.Context(), q, []int{0, 1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		stop := startWorker(t, q)
		if n := receive(t, sizes, "the batch"); n != most {
			t.Errorf("a batch has %d tasks, want %d", n, most)
		}
		for range most {
			receive(t, began, "the run of each task")
		}
		for i, want := range []struct {
			state    falldue.State
			attempts int
		}{{falldue.StateDone, 1}, {falldue.StateOpen, 1}, {falldue.StateSnoozed, 0}, {falldue.StateDead, 1}} {
			waitFor(t, q, receipts[i].ID, "the end of its run", func(info falldue.TaskInfo) bool {
				return info.State == want.state && info.Attempts == want.attempts && info.ClaimedBy == ""
			})
		}
		waiting := enqueue(t, q, k, 0)
		if id := receive(t, began, "the run of a task that waits for more"); id != waiting {
			t.Errorf("task %d began, want %d", id, waiting)
		}
		stop()
		if info := readTask(t, q, waiting); info.State != falldue.StateSnoozed || info.Attempts != 0 || info.ClaimedBy != "" || len(sizes) != 0 {
			t.Errorf("a task that waited for more is %+v, and %d more batches ran", info, len(sizes))
		}
	}},
	{"a handler for many tasks can sort them: each keeps its own error and its own context", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Concurrency: 3, DoneRetention: time.Hour})
		k := falldue.NewKind[int]("sorted", falldue.KindConfig{})
		began, ended := make(chan struct{}), make(chan struct{})
		many.Handle(q, k, many.Config[int]{Most: 3, Wait: time.Hour}, func(ctx context.Context, b *many.Batch[int]) error {
			slices.SortFunc(b.Tasks, func(x, y falldue.Task[int]) int { return cmp.Compare(x.Args%3, y.Args%3) }) // 3, 1, 2
			close(began)
			defer close(ended)
			for i, task := range b.Tasks {
				switch task.Args {
				case 1:
					b.Errs[i] = falldue.Discard(errors.New("task 1"))
				case 2:
					select {
					case <-b.Context(i).Done():
					case <-ctx.Done():
					}
				}
			}
			return nil
		})
		receipts, err := k.EnqueueMany(t.Context(), q, []int{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		startWorker(t, q)
		receive(t, began, "the batch")
		if err := q.Cancel(t.Context(), receipts[1].ID); err != nil {
			t.Fatal(err)
		}
		receive(t, ended, "the end of the context of the cancelled task")
		for i, want := range []falldue.State{falldue.StateDead, falldue.StateCancelled, falldue.StateDone} {
			waitFor(t, q, receipts[i].ID, "the end of its run", func(info falldue.TaskInfo) bool {
				return info.State == want && info.ClaimedBy == ""
			})
		}
	}},
}
