package systemtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// sessions are statements about an engine's sessions: the number of this one, the
// numbers of all that use this database, and what ends one.
type sessions struct{ own, all, end string }

func sessionsOf(engine string) sessions {
	if engine == testdb.Postgres {
		return sessions{
			own: "select pg_backend_pid()", end: "select pg_terminate_backend(%d)",
			all: "select pid from pg_stat_activity where datname = current_database()",
		}
	}
	return sessions{
		own: "select connection_id()", end: "kill %d",
		all: "select id from information_schema.processlist where db = database()",
	}
}

// process is what a process has.
type process struct {
	*falldue.Queue
	db  *sqlx.DB
	log *lockedBuilder
}

// reserveLease is the lease of the tests of reserves.
// A busy machine must be able to open a connection within a part of it.
const reserveLease = 10 * time.Second

// eachLimitedPool runs f for each driver of an engine with a network, with a process
// whose pool has up to size connections, and another one with a pool of one.
func eachLimitedPool(t *testing.T, size int, f func(t *testing.T, engine string, here, there process)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			t.Skip("its writers wait for each other")
		}
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) {
				t.Parallel()
				dsn := testdb.DSN(t, engine)
				open := func(size int) process {
					var log lockedBuilder
					db, err := testdb.OpenDSN(driver, dsn)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = db.Close() })
					q, err := falldue.New(db, falldue.Config{
						Lease: reserveLease, DoneRetention: time.Hour, Concurrency: 4, PollInterval: 50 * time.Millisecond,
						Logger: slog.New(slog.NewTextHandler(&log, nil)),
					})
					if err != nil {
						t.Fatal(err)
					}
					db.SetMaxOpenConns(size)
					return process{q, db, &log}
				}
				here, there := open(size), open(1)
				if err := there.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				f(t, engine, here, there)
			})
		}
	})
}

// TestHandlersThatHoldAllConnectionsKeepTheirLeases: handlers hold connections of the
// worker's pool until it has no more, for many leases. All leases are extended, also
// after the reserve's connection has been ended, and a task that ends meanwhile is
// settled. After Run the pool has all its connections.
func TestHandlersThatHoldAllConnectionsKeepTheirLeases(t *testing.T) {
	t.Parallel()
	eachLimitedPool(t, 4, func(t *testing.T, engine string, here, there process) {
		statements := sessionsOf(engine)
		var mu sync.Mutex
		held := map[int]int64{} // sessions by task
		release := make([]chan struct{}, 4)
		for i := range release {
			release[i] = make(chan struct{})
		}
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		falldue.Handle(here.Queue, kind, func(ctx context.Context, task falldue.Task[int]) error {
			c, err := here.db.Connx(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			var session int64
			if err := c.GetContext(ctx, &session, statements.own); err != nil {
				return err
			}
			mu.Lock()
			held[task.Args] = session
			mu.Unlock()
			select {
			case <-release[task.Args]:
			case <-ctx.Done():
				t.Errorf("task %d: %v", task.Args, context.Cause(ctx))
			}
			return nil
		})
		receipts, err := kind.EnqueueMany(t.Context(), there.Queue, []int{0, 1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		holders := func() (tasks []int, all []int64) {
			mu.Lock()
			defer mu.Unlock()
			for task, session := range held {
				tasks, all = append(tasks, task), append(all, session)
			}
			return tasks, all
		}
		extendedFor := func(d time.Duration, tasks []int) {
			t.Helper()
			first := time.Time{}
			for _, task := range tasks {
				if at := info(t, there.Queue, receipts[task].ID).UpdatedAt; at.After(first) {
					first = at
				}
			}
			for _, task := range tasks {
				waitFor(t, "a lease to be extended", func() bool {
					i := info(t, there.Queue, receipts[task].ID)
					return i.UpdatedAt.Sub(first) > d || i.State == falldue.StateDone || i.Attempts > 1
				})
			}
		}

		stop := runUntil(t, here.Queue)
		waitFor(t, "the handlers to hold the pool", func() bool { tasks, _ := holders(); return len(tasks) >= 3 })
		extendedFor(3*reserveLease/2, []int{0, 1, 2, 3})

		tasks, _ := holders()
		ended := tasks[0]
		close(release[ended])
		waitFor(t, "a task to be settled while the others hold the pool", func() bool { return info(t, there.Queue, receipts[ended].ID).State == falldue.StateDone })
		waitFor(t, "the last handler to take its connection", func() bool { tasks, _ := holders(); return len(tasks) == 4 })

		_, mine := holders()
		var own int64
		if err := there.db.Get(&own, statements.own); err != nil {
			t.Fatal(err)
		}
		var all []int64
		if err := there.db.Select(&all, statements.all); err != nil {
			t.Fatal(err)
		}
		for _, session := range all {
			if session != own && !slices.Contains(mine, session) {
				there.db.MustExec(fmt.Sprintf(statements.end, session))
			}
		}
		others := slices.DeleteFunc([]int{0, 1, 2, 3}, func(task int) bool { return task == ended })
		extendedFor(3*reserveLease/2, others)

		for _, task := range others {
			close(release[task])
		}
		for _, r := range receipts {
			waitFor(t, "the tasks to be done", func() bool { return info(t, there.Queue, r.ID).State == falldue.StateDone })
			if i := info(t, there.Queue, r.ID); i.Attempts != 1 {
				t.Errorf("task %d took %d attempts", r.ID, i.Attempts)
			}
		}
		stop()
		if n := here.db.Stats().InUse; n != 0 {
			t.Errorf("after Run %d connections are in use", n)
		}
	})
}

// TestWorkersOfOnePoolShareTheReserve: as many workers as a pool has connections run on
// it. Tasks run at once.
func TestWorkersOfOnePoolShareTheReserve(t *testing.T) {
	t.Parallel()
	eachLimitedPool(t, 2, func(t *testing.T, _ string, here, there process) {
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		for range 2 {
			q, err := falldue.New(here.db, falldue.Config{DoneRetention: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error { return nil })
			t.Cleanup(runUntil(t, q))
		}
		receipt, err := kind.Enqueue(t.Context(), there.Queue, 1)
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the task", func() bool { return info(t, there.Queue, receipt.ID).State == falldue.StateDone })
	})
}

// TestPoolOfOneConnectionIsReported: such a pool can keep no connection for leases.
func TestPoolOfOneConnectionIsReported(t *testing.T) {
	t.Parallel()
	eachLimitedPool(t, 1, func(t *testing.T, _ string, here, _ process) {
		falldue.Handle(here.Queue, falldue.NewKind[int]("k", falldue.KindConfig{}), func(context.Context, falldue.Task[int]) error { return nil })
		stop := runUntil(t, here.Queue)
		waitFor(t, "the log", func() bool { return strings.Contains(here.log.String(), "the pool has one connection") })
		stop()
	})
}
