package systemtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestRetryInPlace: a dead task of a sequence runs at its end after a retry, or in its place if the retry asks for that.
func TestRetryInPlace(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := migratedQueue(t, db, falldue.Config{Concurrency: 1})
		kind := falldue.NewKind[int]("event", falldue.KindConfig{
			Policy: backoff.Constant(time.Hour), Limits: []falldue.Limit{falldue.InOrder()},
		}).KeyedBy(func(int) string { return "a" })
		receipts, err := kind.EnqueueMany(t.Context(), q, []int{0, 1, 2, 3, 4})
		if err != nil {
			t.Fatal(err)
		}
		// SQLite's clock has milliseconds. A retry in the millisecond of the last enqueue would be ordered by ID.
		for last := receipts[4].ID; ; {
			task, err := q.Task(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			if task.Now.After(task.CreatedAt) {
				break
			}
		}
		db.MustExec(db.Rebind("update falldue_tasks set state = 'dead', attempts = 1 where id <= ?"), receipts[2].ID)
		if err := q.Retry(t.Context(), receipts[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := q.Retry(t.Context(), receipts[1].ID, falldue.RetryOptions{InPlace: true}); err != nil {
			t.Fatal(err)
		}
		report, err := ops.New(q).RetryMany(t.Context(), ops.Filter{Kind: "event"}, ops.BulkOptions{InPlace: true})
		if err != nil || report.Changed != 1 {
			t.Fatal(report, err)
		}
		ran := make(chan int, len(receipts))
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[int]) error {
			ran <- task.Args
			return nil
		})
		stop := runUntil(t, q)
		defer stop()
		var order []int
		for range receipts {
			order = append(order, within(t, ran, "the next task"))
		}
		if got := fmt.Sprint(order); got != "[1 2 3 4 0]" {
			t.Errorf("tasks ran in the order %s", got)
		}
	})
}

// TestChangeInPlace: the first task of a sequence has failed, and gets other arguments. It runs before the tasks after it.
func TestChangeInPlace(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		q := migratedQueue(t, testdb.Open(t, engine), falldue.Config{Concurrency: 1})
		kind := falldue.NewKind[string]("event", falldue.KindConfig{
			Policy: backoff.Constant(time.Hour), Limits: []falldue.Limit{falldue.InOrder()},
		}).KeyedBy(func(string) string { return "a" })
		receipts, err := kind.EnqueueMany(t.Context(), q, []string{"bad", "second"})
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan string, len(receipts))
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
			if task.Args == "bad" {
				return errors.New("bad")
			}
			ran <- task.Args
			return nil
		})
		stop := runUntil(t, q)
		defer stop()
		first := receipts[0].ID
		waitFor(t, "the first task to fail", func() bool { return info(t, q, first).LastError != "" })
		o := ops.New(q)
		if err := errors.Join(o.ChangeTask(t.Context(), first, ops.TaskChange{Args: "good"}), o.RunNow(t.Context(), first)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"good", "second"} {
			if got := within(t, ran, "the next task"); got != want {
				t.Errorf("%q ran, want %q", got, want)
			}
		}
	})
}
