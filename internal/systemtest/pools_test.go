package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestTransactionsOfAnotherPool: the application has a pool of its own on the database.
// Its transactions can enqueue and settle tasks, also after the queue has prepared the
// statements for that in its own pool.
func TestTransactionsOfAnotherPool(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn, driver := testdb.DSN(t, engine), testdb.Drivers(engine)[0]
		pools := make([]*sqlx.DB, 2)
		for i := range pools {
			var err error
			if pools[i], err = sqlx.Open(driver, dsn); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pools[i].Close() })
		}
		q, err := falldue.New(pools[0], falldue.Config{DoneRetention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
			if task.Args == 0 {
				return nil
			}
			tx, err := pools[1].BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := task.DoneTx(ctx, tx); err != nil {
				return err
			}
			return tx.Commit()
		})
		stop := runUntil(t, q)
		defer stop()
		for range 2 { // in the second round all statements are prepared
			receipt, err := kind.Enqueue(t.Context(), q, 0)
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "a task", func() bool { return info(t, q, receipt.ID).State == falldue.StateDone })
			tx := pools[1].MustBegin()
			if receipt, err = kind.EnqueueTx(t.Context(), q, tx, 1); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			q.Wake()
			waitFor(t, "a task of the other pool", func() bool { return info(t, q, receipt.ID).State == falldue.StateDone })
			if i := info(t, q, receipt.ID); i.Attempts != 1 {
				t.Errorf("it took %d attempts: %s", i.Attempts, i.LastError)
			}
		}
	})
}
