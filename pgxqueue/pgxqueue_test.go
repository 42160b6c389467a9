package pgxqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/pgxqueue"
)

func TestMain(m *testing.M) {
	testdb.Main(m, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener")) // ends with its queue
}

// open opens a pool of up to so many connections, and a queue on it.
func open(t *testing.T, dsn string, conns int, cfg falldue.Config) (*pgxpool.Pool, *falldue.Queue) {
	t.Helper()
	join := "?"
	if strings.Contains(dsn, "?") {
		join = "&"
	}
	config, err := pgxpool.ParseConfig(fmt.Sprintf("%s%spool_max_conns=%d", dsn, join, conns))
	if err != nil {
		t.Fatal(err)
	}
	pool, q := openPool(t, config, cfg)
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return pool, q
}

// openPool opens a pool and a queue on it, and migrates nothing.
func openPool(t *testing.T, config *pgxpool.Config, cfg falldue.Config) (*pgxpool.Pool, *falldue.Queue) {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	q, err := pgxqueue.New(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return pool, q
}

// start runs a worker until the test ends or stop is called.
func start(t *testing.T, q *falldue.Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	return func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(testdb.Patience):
			t.Error("Run did not return")
		}
	}
}

func receive[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited %v for %s", testdb.Patience, what)
	}
	return v
}

// TestTransactionsOfPgx: tasks are enqueued and settled in transactions of pgx. A worker
// that polls once an hour runs them when the transaction of another process commits, and
// not before, without any setting.
func TestTransactionsOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.DSN(t, testdb.Postgres) + "&default_query_exec_mode=" + mode
			pool, worker := open(t, dsn, 5, falldue.Config{PollInterval: time.Hour, DoneRetention: time.Hour})
			other, producer := open(t, dsn, 5, falldue.Config{})
			if _, err := pool.Exec(t.Context(), "create table effects (task bigint primary key)"); err != nil {
				t.Fatal(err)
			}
			soon := backoff.Constant(0)
			kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: soon})
			ran := make(chan int, 1000)
			falldue.Handle(worker, kind, func(ctx context.Context, task falldue.Task[int]) error {
				if task.Args < 10 && task.Attempt == 1 {
					return errors.New("the first attempt fails")
				}
				tx, err := pool.Begin(ctx)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
				if _, err := tx.Exec(ctx, "insert into effects values ($1)", task.ID); err != nil {
					return err
				}
				if err := errors.Join(task.SetResult("done"), task.DoneTx(ctx, pgxqueue.Tx(tx))); err != nil {
					return err
				}
				if err := tx.Commit(ctx); err != nil {
					return err
				}
				ran <- task.Args
				return nil
			})
			stop := start(t, worker)
			defer stop()
			enqueue := func(first int) (ids []int64, end func(commit bool)) {
				ctx := t.Context()
				tx, err := other.Begin(ctx)
				if err != nil {
					t.Fatal(err)
				}
				one, err := kind.EnqueueTx(ctx, producer, pgxqueue.Tx(tx), first)
				if err != nil {
					t.Fatal(err)
				}
				many, err := kind.EnqueueManyTx(ctx, producer, pgxqueue.Tx(tx), make([]int, 501), falldue.EnqueueOptions{Delay: time.Hour})
				if err != nil || len(many) != 501 {
					t.Fatalf("%d ids, error %v", len(many), err)
				}
				own, err := producer.EnqueueManyTx(ctx, pgxqueue.Tx(tx),
					kind.Params(first+10, falldue.EnqueueOptions{Policy: soon, MaxAttempts: 3}), kind.Params(first+11))
				if err != nil {
					t.Fatal(err)
				}
				page, err := ops.New(producer).TasksTx(ctx, pgxqueue.Tx(tx), ops.Filter{}, ops.ListOptions{Limit: 1000})
				if err != nil || len(page.Tasks) < 504 {
					t.Fatalf("the transaction sees %d tasks (error %v), want 504 of its own", len(page.Tasks), err)
				}
				return []int64{own[0].ID, own[1].ID, one.ID}, func(commit bool) {
					if !commit {
						err = tx.Rollback(ctx)
					} else {
						err = tx.Commit(ctx)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			_, end := enqueue(100)
			end(false)
			ids, end := enqueue(1)
			select {
			case args := <-ran:
				t.Errorf("task %d ran before the commit", args)
			default:
			}
			end(true)
			for range 3 {
				if got := receive(t, ran, "a task"); got > 12 {
					t.Errorf("task %d of the transaction that was rolled back ran", got)
				}
			}
			var effects int
			if err := pool.QueryRow(t.Context(), "select count(*) from effects where task = any($1::bigint[])", ids).Scan(&effects); err != nil || effects != 3 {
				t.Errorf("%d effects of 3 tasks (error %v)", effects, err)
			}
			if info, err := worker.Task(t.Context(), ids[2]); err != nil || info.State != falldue.StateDone || info.Attempts != 2 || string(info.Result) != `"done"` {
				t.Errorf("%+v (error %v)", info, err)
			}
		})
	}
}

// TestNilIsRefused covers pools and transactions.
func TestNilIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := pgxqueue.New(nil, falldue.Config{}); !errors.Is(err, falldue.ErrInvalid) {
		t.Errorf("a nil pool: error %v", err)
	}
	_, q := open(t, testdb.DSN(t, testdb.Postgres), 2, falldue.Config{})
	if _, err := falldue.NewKind[int]("k", falldue.KindConfig{}).EnqueueTx(t.Context(), q, pgxqueue.Tx(nil), 1); !errors.Is(err, falldue.ErrInvalid) {
		t.Errorf("a nil transaction: error %v", err)
	}
}

// TestPoolOfOneConnection: handlers and the worker take turns.
func TestPoolOfOneConnection(t *testing.T) {
	t.Parallel()
	pool, q := open(t, testdb.DSN(t, testdb.Postgres), 1, falldue.Config{})
	kind := falldue.NewKind[int]("k", falldue.KindConfig{})
	ran := make(chan int, 10)
	falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
		_, err := pool.Exec(ctx, "select 1")
		ran <- task.Args
		return err
	})
	stop := start(t, q)
	defer stop()
	if _, err := kind.EnqueueMany(t.Context(), q, make([]int, 10)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		receive(t, ran, "a task")
	}
}

// TestHandlersThatHoldThePoolKeepTheirLeases: handlers take connections from the pool
// until it has no more, which database/sql does not see. All leases are extended.
func TestHandlersThatHoldThePoolKeepTheirLeases(t *testing.T) {
	t.Parallel()
	for range 3 { // a machine that stalls for longer than a lease loses it
		if lost := lostWithoutAPool(t); lost == 0 {
			return
		}
	}
	t.Error("handlers have lost their leases in each of three runs")
}

// lostWithoutAPool runs handlers that hold the pool for longer than a lease. It returns how many have lost theirs.
func lostWithoutAPool(t *testing.T) (lost int) {
	t.Helper()
	const lease, conns = 6 * time.Second, 4 // a busy machine may miss a heartbeat
	dsn := testdb.DSN(t, testdb.Postgres)
	pool, q := open(t, dsn, conns, falldue.Config{Lease: lease, DoneRetention: time.Hour})
	_, other := open(t, dsn, 1, falldue.Config{})
	kind := falldue.NewKind[int]("k", falldue.KindConfig{})
	started, release := make(chan struct{}, conns), make(chan struct{})
	falldue.Handle(q, kind, func(ctx context.Context, _ falldue.Task[int]) error {
		started <- struct{}{}
		c, err := pool.Acquire(ctx) // the last one waits until the others have ended
		if err != nil {
			return err
		}
		defer c.Release()
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	receipts, err := kind.EnqueueMany(t.Context(), other, make([]int, conns))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, q)
	for range conns {
		receive(t, started, "a handler")
	}
	info := func(id int64) falldue.TaskInfo {
		i, err := other.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	waitFor := func(what string, f func() bool) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for late := time.After(testdb.Patience); !f(); {
			select {
			case <-late:
				t.Fatalf("waited %v for %s", testdb.Patience, what)
			case <-tick.C:
			}
		}
	}
	waitFor("the handlers to hold the pool", func() bool { return pool.Stat().AcquiredConns() == conns })
	first := info(receipts[0].ID).UpdatedAt
	for _, r := range receipts {
		waitFor("a lease to be extended", func() bool { i := info(r.ID); return i.Attempts > 1 || i.UpdatedAt.Sub(first) > lease })
	}
	close(release)
	for _, r := range receipts {
		waitFor("the tasks to be done", func() bool { return info(r.ID).State == falldue.StateDone })
		if info(r.ID).Attempts != 1 {
			lost++
		}
	}
	stop()
	waitFor("the pool to have all its connections", func() bool { return pool.Stat().AcquiredConns() == 0 })
	return lost
}
