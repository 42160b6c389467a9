package systemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestWorkerStartsTasksOfOthersBeforeThePoll: on each engine whose ids ascend, a worker
// whose polls are half an hour apart starts a task of another process, and one of another
// process's transaction that is not followed by a Wake.
func TestWorkerStartsTasksOfOthersBeforeThePoll(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		open := func() (*falldue.Queue, *sqlx.DB) {
			db, err := testdb.OpenDSN(testdb.Drivers(engine)[0], dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			q, err := falldue.New(db, falldue.Config{PollInterval: 30 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			return q, db
		}
		worker, _ := open()
		other, db := open()
		if err := worker.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := falldue.NewKind[int]("probed", falldue.KindConfig{})
		ran := make(chan int, 4)
		falldue.Handle(worker, k, func(_ context.Context, t falldue.Task[int]) error {
			ran <- t.Args
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(ctx) }()
		enqueueTx := func(i int) error {
			tx, err := db.BeginTxx(t.Context(), nil)
			if err != nil {
				return err
			}
			if _, err := k.EnqueueTx(t.Context(), other, tx, i); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		}
		for i := range 4 {
			enqueue := enqueueTx
			if i%2 == 0 {
				enqueue = func(i int) error { _, err := k.Enqueue(t.Context(), other, i); return err }
			}
			if err := enqueue(i); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ran:
			case <-time.After(testdb.Patience):
				t.Fatalf("task %d of another process has not started", i)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
