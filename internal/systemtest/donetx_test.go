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
		type end struct {
			fence int64
			cause error
		}
		rolledBack, ended := make(chan int64, 100), make(chan end, 100)
		var taken atomic.Bool // by another worker
		falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
			if taken.Load() {
				return nil
			}
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			if err := errors.Join(task.DoneTx(ctx, tx), tx.Rollback()); err != nil {
				return err
			}
			rolledBack <- task.Fence
			<-ctx.Done()
			ended <- end{task.Fence, context.Cause(ctx)}
			return nil
		})
		receipt, err := kind.Enqueue(t.Context(), q, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		var fence int64
		for range 5 { // a machine that stalls for longer than a lease loses it
			fence = within(t, rolledBack, "a rollback")
			for range 2 { // the first extension may have begun before the rollback
				before := info(t, q, receipt.ID).UpdatedAt
				waitFor(t, "the lease to be extended", func() bool {
					i := info(t, q, receipt.ID)
					return i.Fence != fence || i.UpdatedAt.After(before)
				})
			}
			result := db.MustExec(db.Rebind("update falldue_tasks set fence = fence + 1, claimed_by = 'another' where fence = ?"), fence)
			if n, err := result.RowsAffected(); err != nil {
				t.Fatal(err)
			} else if n == 1 {
				taken.Store(true)
				break
			}
		}
		if !taken.Load() {
			t.Fatal("each of five runs lost its lease")
		}
		for {
			e := within(t, ended, "the handler's context to end")
			if e.fence != fence {
				continue
			}
			if !errors.Is(e.cause, falldue.ErrLeaseLost) {
				t.Errorf("the context ended because of %v, want %v", e.cause, falldue.ErrLeaseLost)
			}
			break
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
