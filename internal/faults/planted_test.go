package faults

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/falldue/falldue/internal/testdb"
)

// planted is SQLite's driver with a bug: it changes statements on their way, or
// undoes transactions that it is asked to commit.
type planted struct {
	driver.Driver
	change        func(statement string) string
	forgetsCommit bool
}

type plantedConn struct {
	driver.Conn
	bug planted
}

// The interfaces that database/sql must find in a connection; by falling back
// from the others it prepares every statement, and by that passes here.
var _ interface {
	driver.ConnPrepareContext
	driver.ConnBeginTx
} = plantedConn{}

func (d planted) Open(dsn string) (driver.Conn, error) {
	conn, err := d.Driver.Open(dsn)
	return plantedConn{conn, d}, err
}

func (c plantedConn) PrepareContext(ctx context.Context, statement string) (driver.Stmt, error) {
	if c.bug.change != nil {
		statement = c.bug.change(statement)
	}
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, statement)
}

func (c plantedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err == nil && c.bug.forgetsCommit {
		return forgetfulTx{tx}, nil
	}
	return tx, err
}

type forgetfulTx struct{ driver.Tx }

func (t forgetfulTx) Commit() error { return t.Rollback() }

// replaced makes a change of statements that contain a text.
func replaced(in string, oldNew ...string) func(string) string {
	return func(statement string) string {
		if !strings.Contains(statement, in) {
			return statement
		}
		return strings.NewReplacer(oldNew...).Replace(statement)
	}
}

func both(one, other func(string) string) func(string) string {
	return func(statement string) string { return other(one(statement)) }
}

var (
	// Heartbeats that reach nothing: leases run out while handlers run. That is
	// no bug, and makes the others show.
	withoutHeartbeats = replaced("as t set updated_at = (", "set updated_at = (", "set updated_at = t.updated_at + 0 * (")
	// A settle that asks neither for the claim nor for its worker.
	withoutOwner = replaced("t.fence = s.task_fence and t.claimed_by = ?", "t.fence = s.task_fence and t.claimed_by = ?", "? <> ''")
	// Claims that are all number one.
	withoutFence = both(
		replaced("fence + 1", "select 1, id, fence + 1", "select 1, id, 1", "fence = t.fence + 1", "fence = 1"),
		replaced("attempted_at = ", " and t.fence = s.task_fence", ""),
	)
)

func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		worker   planted
		enqueuer planted
		most     time.Duration // it may never end
		found    func(Verdict) bool
	}{
		{"leases run out, and nothing else is wrong", planted{change: withoutHeartbeats}, planted{}, time.Minute, Verdict.OK},
		{"settle without a lease", planted{change: both(withoutHeartbeats, withoutOwner)}, planted{}, time.Minute, func(v Verdict) bool { return v.StaleSettles > 0 }},
		{"fencing dropped", planted{change: withoutFence}, planted{}, 3 * time.Second, func(v Verdict) bool { return v.Doubled > 0 }},
		{"enqueue acknowledged before its commit", planted{}, planted{forgetsCommit: true}, time.Minute, func(v Verdict) bool { return v.Lost > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, recorded := runPlanted(t, c.worker, c.enqueuer, c.most)
			if !c.found(v) {
				t.Errorf("%d lost, %d doubled, %d stale settles: %q", v.Lost, v.Doubled, v.StaleSettles, v.Findings)
			}
			if c.worker.change != nil && v.OK() && recorded["lost"] == 0 {
				t.Error("no lease ran out")
			}
		})
	}
}

// runPlanted runs jobs in two workers, and tells what the checker says of it,
// and how many attempts are recorded as what.
func runPlanted(t *testing.T, work, enqueue planted, most time.Duration) (v Verdict, recorded map[string]int) {
	role := Role{
		DSN: testdb.DSN(t, testdb.SQLite), Driver: "sqlite", Folder: t.TempDir(), Seed: 7, Policy: policies[0],
		Handlers: 16, Connections: 4, Lease: time.Second, Longest: 3 * time.Second, Batch: 10,
	}
	db, q := prepare(t, role)
	enqueuer := named(role, "enqueuer")
	enqueuer.Driver, enqueuer.Tasks = register(t, enqueue, "enqueue"), 400
	if err := enqueuer.Enqueue(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	driver := register(t, work, "work")
	for i := range 2 {
		worker := named(role, fmt.Sprint("worker", i))
		worker.Driver = driver
		workers.Go(func() {
			if err := worker.Work(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_ = drained(waiting, q) // what is left the checker calls lost
	stop()
	workers.Wait()
	v = judge(t, role.Folder, db, q, Checker{MaxAttempts: maxAttempts})
	table, err := ReadTable(t.Context(), db, q)
	if err != nil {
		t.Fatal(err)
	}
	recorded = map[string]int{}
	for _, row := range table {
		for _, r := range row.Records {
			recorded[r.Outcome]++
		}
	}
	return v, recorded
}

// register makes a planted driver known to database/sql.
func register(t *testing.T, bug planted, name string) string {
	bug.Driver = &sqlite.Driver{}
	name = t.Name() + " " + name
	sql.Register(name, bug)
	return name
}
