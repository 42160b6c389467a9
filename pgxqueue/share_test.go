package pgxqueue_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/pgxdb"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/pgxqueue"
)

// TestWorkersOfOnePool: as many workers as a pool has connections run on it. They share
// one database, and so what they keep for leases.
func TestWorkersOfOnePool(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	pool, first := open(t, dsn, 2, falldue.Config{})
	if one, two := pgxdb.Open(pool), pgxdb.Open(pool); one != two {
		t.Error("the pool has two databases")
	}
	second, err := pgxqueue.New(pool, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, other := open(t, dsn, 1, falldue.Config{})
	kind := falldue.NewKind[int]("k", falldue.KindConfig{})
	ran := make(chan int, 10)
	for _, q := range []*falldue.Queue{first, second} {
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[int]) error { ran <- task.Args; return nil })
		t.Cleanup(start(t, q))
	}
	if _, err := kind.EnqueueMany(t.Context(), other, make([]int, 10)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		receive(t, ran, "a task")
	}
}

// TestQueuesAreCollected: the database of a pool ends with its last queue.
func TestQueuesAreCollected(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), testdb.DSN(t, testdb.Postgres))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := pgxdb.Open(pool)
	for range 2 {
		if _, err := pgxqueue.New(pool, falldue.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	pgxdb.Close(pool)
	for late := time.Now().Add(testdb.Patience); db.PingContext(t.Context()) == nil; runtime.GC() {
		if time.Now().After(late) {
			t.Fatalf("after %v the database is still open", testdb.Patience)
		}
	}
}

// TestCallsOutliveTheirQueue: a call is the last use of a queue, which is collected while the
// call runs. It has its database until it returns.
func TestCallsOutliveTheirQueue(t *testing.T) {
	config, err := pgxpool.ParseConfig(testdb.DSN(t, testdb.Postgres))
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Bool
	gone := make(chan struct{})
	config.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
		for range 10 { // it is not gone before the call has no use for it
			select {
			case <-gone:
			default:
				if calls.Load() {
					runtime.GC()
				}
			}
		}
		return true, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	q, err := pgxqueue.New(pool, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[int]("k", falldue.KindConfig{})
	if _, err := kind.Enqueue(t.Context(), q, 1, falldue.EnqueueOptions{RunAt: time.Now().Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	runtime.AddCleanup(q, func(gone chan struct{}) { close(gone) }, gone)
	calls.Store(true)
	if _, err := ops.New(q).Overdue(t.Context(), 0); err != nil {
		t.Error(err)
	}
	select {
	case <-gone:
	default:
		t.Error("the queue was not collected during the call")
	}
}
