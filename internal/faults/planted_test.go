package faults

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
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

// rewrite is a change of statements: where they match when, find becomes put.
type rewrite struct{ when, find, put string }

// rewritten makes a change of rewrites, each of which must have met a statement
// when the test is over.
func rewritten(t *testing.T, rewrites ...rewrite) func(string) string {
	met := make([]atomic.Bool, len(rewrites))
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		for i := range met {
			if !met[i].Load() {
				t.Errorf("no statement matches %+v", rewrites[i])
			}
		}
	})
	return func(statement string) string {
		for i, r := range rewrites {
			if !regexp.MustCompile(r.when).MatchString(statement) {
				continue
			}
			find := regexp.MustCompile(r.find)
			if find.MatchString(statement) {
				met[i].Store(true)
				statement = find.ReplaceAllString(statement, r.put)
			}
		}
		return statement
	}
}

var (
	// Heartbeats that reach nothing: leases run out while handlers run. That is
	// no bug, and makes the others show.
	withoutHeartbeats = rewrite{`^update`, `set updated_at = \(`, `set updated_at = t.updated_at + 0 * (`}
	// Heartbeats that take every claim for their own still, so that handlers go on.
	withoutNews = rewrite{`^select t\.id`, byClaim + ` and t\.claimed_by = \?`, byTask + ` and ? <> ''`}
	// Settles that ask neither for the claim nor for its worker: of tasks that
	// are done, and of others.
	withoutOwner     = rewrite{`^update`, byClaim + ` and t\.claimed_by = \?`, byTask + ` and ? <> ''`}
	withoutOwnerElse = rewrite{`^update`, `t\.fence = s\.task_fence and (.*) and t\.claimed_by = \?`, `$1 and ? <> ''`}
	// Claims that are all number one: the statements that find, and that take.
	allFirst = rewrite{`.`, `min\((t\.)?fence, \d+\) \+ 1`, `1`}
	anyClaim = rewrite{`first_attempted_at = `, byClaim, byTask}
)

// How a statement finds the rows of claims, and how it would find those of tasks.
const (
	byClaim = `\(t\.id, t\.fence\) in \(values ([?(), ]+)\)`
	byTask  = `t.id in (select column1 from (values $1))`
)

// plant is a run with a bug, or with none.
type plant struct {
	name    string
	work    []rewrite // in the workers
	forgets bool      // the enqueuer's commits
	endless bool      // the tasks never end
	tasks   int
	tries   int           // until it is found
	longest time.Duration // that a handler works; leases are a second
	found   func(Verdict) bool
}

func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, p := range []plant{
		{
			name: "leases run out, and nothing else is wrong",
			work: []rewrite{withoutHeartbeats}, tasks: 400, tries: 1, longest: 3 * time.Second,
			found: Verdict.OK,
		},
		{
			// It takes an accident to show: handlers that go on long after their
			// leases, which are one in fifty, and end after another's did.
			name: "settle without a lease",
			work: []rewrite{withoutHeartbeats, withoutNews, withoutOwner, withoutOwnerElse}, tasks: 1600, tries: 3, longest: 10 * time.Second,
			found: func(v Verdict) bool { return v.StaleSettles > 0 },
		},
		{
			name: "fencing dropped",
			work: []rewrite{allFirst, anyClaim}, endless: true, tasks: 400, tries: 1, longest: 3 * time.Second,
			found: func(v Verdict) bool { return v.Doubled > 0 },
		},
		{
			name:    "enqueue acknowledged before its commit",
			forgets: true, tasks: 400, tries: 1, longest: 3 * time.Second,
			found: func(v Verdict) bool { return v.Lost > 0 },
		},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			work, enqueue := planted{change: rewritten(t, p.work...)}, planted{forgetsCommit: p.forgets}
			var v Verdict
			var recorded map[string]int
			for seed := range p.tries {
				if v, recorded = p.run(t, uint64(seed), work, enqueue); p.found(v) {
					break
				}
			}
			if !p.found(v) {
				t.Errorf("%d lost, %d doubled, %d stale settles: %q", v.Lost, v.Doubled, v.StaleSettles, v.Findings)
			}
			if v.OK() && recorded["lost"] == 0 {
				t.Error("no lease ran out")
			}
		})
	}
}

// run runs jobs drawn from a seed in two workers, until all have ended, or what
// never ends is found. It tells what the checker says of it, and how many
// attempts are recorded as what.
func (p plant) run(t *testing.T, seed uint64, work, enqueue planted) (v Verdict, recorded map[string]int) {
	role := Role{
		DSN: testdb.DSN(t, testdb.SQLite), Driver: "sqlite", Folder: t.TempDir(), Seed: seed, Policy: policies[0],
		Handlers: 16, Connections: 4, Lease: time.Second, Longest: p.longest, Batch: 10,
	}
	db, q := prepare(t, role)
	enqueuer := named(role, "enqueuer")
	enqueuer.Driver, enqueuer.Tasks = register(t, enqueue, "enqueue"), p.tasks
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
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		moment, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		err := drained(moment, q)
		cancel()
		if err == nil || p.endless && p.found(judge(t, role.Folder, db, q, Checker{MaxAttempts: maxAttempts})) {
			break // what is left the checker calls lost
		}
	}
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

var registered atomic.Int64

// register makes a planted driver known to database/sql.
func register(t *testing.T, bug planted, name string) string {
	bug.Driver = &sqlite.Driver{}
	name = fmt.Sprint(t.Name(), " ", name, " ", registered.Add(1)) // a name is registered for good
	sql.Register(name, bug)
	return name
}
