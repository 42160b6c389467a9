package systemtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestLeaseLostAfterDoneTxWasRolledBack: a handler calls DoneTx, rolls its transaction
// back and goes on. Its lease is extended again, and its context ends when another
// worker has taken the task.
func TestLeaseLostAfterDoneTxWasRolledBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{Lease: 3 * time.Second, DoneRetention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		rolledBack, ended := make(chan struct{}, 1), make(chan error, 1)
		var waits atomic.Bool // a run that loses its lease before, on a slow machine, is tried again
		falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
			if waits.Load() {
				return nil
			}
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			if err := errors.Join(task.DoneTx(ctx, tx), tx.Rollback()); err != nil {
				return err
			}
			waits.Store(true)
			rolledBack <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
		receipt, err := kind.Enqueue(t.Context(), q, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		<-rolledBack
		for range 2 { // the first extension may have begun before the rollback
			before := info(t, q, receipt.ID).UpdatedAt
			waitFor(t, "the lease to be extended", func() bool { return info(t, q, receipt.ID).UpdatedAt.After(before) })
		}
		db.MustExec("update falldue_tasks set fence = fence + 1, claimed_by = 'another'")
		select {
		case err := <-ended:
			if !errors.Is(err, falldue.ErrLeaseLost) {
				t.Errorf("the context ended because of %v, want %v", err, falldue.ErrLeaseLost)
			}
		case <-time.After(testdb.Patience):
			t.Error("the handler does not learn that its lease is lost")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
