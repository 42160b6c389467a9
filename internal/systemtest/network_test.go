package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestSilentNetwork: all connections of a worker go silent, and new ones are fine. The
// worker goes on by new connections. The handler that runs meanwhile keeps its lease, or
// learns that it is over, and its task runs again. When those go silent too, and no new ones can be had, Run returns soon.
func TestSilentNetwork(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			t.Skip("it has no network")
		}
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) {
				t.Parallel()
				dsn := testdb.DSN(t, engine)
				proxy, through := testdb.Through(t, engine, dsn)
				open := func(dsn string) *falldue.Queue {
					db, err := testdb.OpenDSN(driver, dsn)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = db.Close() })
					testdb.KeepIdle(db, 10)
					q, err := falldue.New(db, falldue.Config{Lease: time.Second, ShutdownTimeout: time.Second, DoneRetention: time.Hour})
					if err != nil {
						t.Fatal(err)
					}
					return q
				}
				other, q := open(dsn), open(through)
				if err := other.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: backoff.Constant(0)})
				started, release := make(chan int, 100), make(chan struct{})
				falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
					started <- task.Args
					if task.Args == 1 && task.Attempt == 1 {
						select {
						case <-ctx.Done():
						case <-release:
						}
					}
					return nil
				})
				enqueue := func(args int) {
					if _, err := kind.Enqueue(t.Context(), other, args); err != nil {
						t.Fatal(err)
					}
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				done := make(chan error, 1)
				go func() { done <- q.Run(ctx) }()
				enqueue(1)
				if got := within(t, started, "the first task"); got != 1 {
					t.Fatalf("task %d started", got)
				}
				proxy.Silence()
				enqueue(2)
				if got := within(t, started, "the worker to continue"); got == 2 {
					close(release) // or the lease of task 1 was lost, and it runs again
				}
				waitFor(t, "both tasks to be done", func() bool {
					n, err := ops.New(other).Counts(t.Context())
					return err == nil && len(n) == 1 && n[0].State == falldue.StateDone && n[0].Tasks == 2
				})
				proxy.Freeze()
				enqueue(3)
				stop()
				if err := within(t, done, "Run to return"); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// within receives from c, and fails the test if nothing comes.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testdb.Patience):
		t.Fatalf("waited %v for %s", testdb.Patience, what)
		panic("unreachable")
	}
}
