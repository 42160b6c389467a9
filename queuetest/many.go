package queuetest

import (
	"context"
	"errors"
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
}
