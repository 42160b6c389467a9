package pgnotify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/pgnotify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCommitWakesWorker checks that a worker that polls once an hour runs a task
// when the transaction of another process commits, and not before.
func TestCommitWakesWorker(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	for _, driver := range testdb.Drivers(testdb.Postgres) {
		db, err := sqlx.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		listening := make(chan struct{}, 10)
		listen := pgnotify.DSN(dsn)
		worker, err := falldue.New(db, falldue.Config{PollInterval: time.Hour, Listen: func(ctx context.Context, channel string, wake func()) error {
			return listen(ctx, channel, func() { wake(); listening <- struct{}{} })
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := worker.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("notified", falldue.KindConfig{})
		ran := make(chan int, 10)
		falldue.Handle(worker, kind, func(_ context.Context, task falldue.Task[int]) error { ran <- task.Args; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- worker.Run(ctx) }()
		<-listening

		other, err := falldue.New(db, falldue.Config{Notify: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kind.Enqueue(t.Context(), other, 1, nil); err != nil {
			t.Fatal(err)
		}
		tx := db.MustBegin()
		if _, err := kind.EnqueueManyTx(t.Context(), other, tx, []int{2, 2}, nil); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, ran); got != 1 {
			t.Errorf("%s: ran %d, want the committed task", driver, got)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := receive(t, ran); got != 2 {
				t.Errorf("%s: ran %d, want the task of the transaction", driver, got)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func receive(t *testing.T, c <-chan int) int {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("waited a minute for a task that was notified")
		return 0
	}
}

func TestOtherEnginesReturnErrInvalid(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite)
	if _, err := falldue.New(db, falldue.Config{Listen: pgnotify.DSN("")}); !errors.Is(err, falldue.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
}
