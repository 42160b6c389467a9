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

// planted is SQLite's driver with a bug: it changes statements, or rolls transactions
// back instead of committing them.
type planted struct {
	driver.Driver
	rewrites      *rewrites
	forgetsCommit bool
}

type plantedConn struct {
	driver.Conn
	bug planted
}

// These are all the interfaces of a connection that database/sql may find. Without
// the others it prepares every statement, so that all statements pass here.
var _ interface {
	driver.ConnPrepareContext
	driver.ConnBeginTx
} = plantedConn{}

func (d planted) Open(dsn string) (driver.Conn, error) {
	conn, err := d.Driver.Open(dsn)
	return plantedConn{conn, d}, err
}

func (c plantedConn) PrepareContext(ctx context.Context, statement string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, c.bug.rewrites.change(statement))
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

// rewrite is a change of statements: in those that match when, find becomes put.
type rewrite struct{ when, find, put string }

// rewrites are the changes of a bug, and which of them have changed a statement.
type rewrites struct {
	all []rewrite
	met []atomic.Bool
}

// rewritten returns a bug's changes. At the end of the test each of them must have changed a statement.
func rewritten(t *testing.T, all ...rewrite) *rewrites {
	r := &rewrites{all, make([]atomic.Bool, len(all))}
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		for i := range r.met {
			if !r.met[i].Load() {
				t.Errorf("no statement matches %+v", r.all[i])
			}
		}
	})
	return r
}

func (r *rewrites) change(statement string) string {
	for i, change := range r.all {
		if !regexp.MustCompile(change.when).MatchString(statement) {
			continue
		}
		find := regexp.MustCompile(change.find)
		if find.MatchString(statement) {
			r.met[i].Store(true)
			statement = find.ReplaceAllString(statement, change.put)
		}
	}
	return statement
}

// allMet reports whether each rewrite has changed a statement.
func (r *rewrites) allMet() bool {
	for i := range r.met {
		if !r.met[i].Load() {
			return false
		}
	}
	return true
}

var (
	// Heartbeats without effect, so that leases expire while handlers run. That
	// is no bug, but the other bugs need it to show.
	withoutHeartbeats = rewrite{`^update`, `set updated_at = \(`, `set updated_at = t.updated_at + 0 * (`}
	// Heartbeats that report every claim as still held, so that handlers continue.
	withoutNews = rewrite{`^select t\.id`, byClaim + ` and t\.claimed_by = \?`, byTask + ` and ? <> ''`}
	// Settles that check neither the claim nor its worker: of tasks that are
	// done, and of others.
	withoutOwner     = rewrite{`^update`, byClaim + ` and t\.claimed_by = \?`, byTask + ` and ? <> ''`}
	withoutOwnerElse = rewrite{`^update`, `t\.fence = s\.task_fence and (.*) and t\.claimed_by = \?`, `$1 and ? <> ''`}
	// Claims whose fence is always 1: in the statement that finds, and the one that takes.
	allFirst = rewrite{`.`, `min\((t\.)?fence, \d+\) \+ 1`, `1`}
	anyClaim = rewrite{`first_attempted_at = `, byClaim, byTask}
	// Looks that take all members of a waiter for ended.
	noneIsPending = rewrite{`^select t\.task_id, t\.on_death`, `e\.outcome >= '' and e\.outcome <= ''`, `e.outcome = '-'`}
	// Permits that seem to be free.
	noneIsTaken = rewrite{`^select t\.id, t\.name, t\.n`, `then 1 else 0 end, coalesce\(k\.queue`, `then 0 else 0 end, coalesce(k.queue`}
	// Counts of limited jobs that the database refuses.
	noCount = rewrite{`^select count\(\*\) from falldue_tasks`, `claimed_by`, `claimed`}
	// Permits of rates that are free at once.
	noneIsSpent = rewrite{`^update "falldue_permits"`, `\+ \((s\.wait|\?)\)\)`, `+ 0 * ($1))`}
	// Claims that read the time when a task fell due, and take expired tasks, and upkeep that finds none of these.
	anyTime   = rewrite{`nullif\(rtrim\(claimed_by\)`, `cast\(\(cast\(round\(julianday\('now'\) \* 86400000\.0\) as integer\) - 210866760000000\) \* 1000 as integer\), nullif`, `cast(updated_at as integer), nullif`}
	anySince  = rewrite{`nullif\(rtrim\(claimed_by\)`, `updated_at >= \?`, `updated_at >= 0 * ?`}
	noneIsOld = rewrite{`^select id, cast\(updated_at as integer\) from`, `limit \?`, `limit 0 * ?`}
	// Tasks that seem to have left their sequences.
	noneIsLeft = rewrite{`^select t\.id, t\.name, t\.n`, `case when k\.fence = t\.fence then k\.state else '' end`, `''`}
	// Unique keys whose holders seem to have ended.
	noneHolds = rewrite{`^select t\.hash, t\.token`, `then 1 else 0 end`, `then 0 else 0 end`}
	// Ticks that are still due when they have been taken.
	anyTick = rewrite{`^update "falldue_schedules" as t set next_at`, `set next_at = \(select`, `set next_at = t.next_at + 0 * (select`}
)

// The condition for the rows of claims, and the one for the rows of tasks alone.
const (
	byClaim = `\(t\.id, t\.fence\) in \(values ([?(), ]+)\)`
	byTask  = `t.id in (select column1 from (values $1))`
)

// plant is a run with a bug, or with none.
type plant struct {
	name    string
	work    []rewrite // in the workers
	enqueue []rewrite // in the enqueuer
	forgets bool      // the enqueuer's commits
	endless bool      // the tasks never end, or there are always new ones
	ticks   int       // schedules of a worker
	only    string    // the kind of the tasks that are not deleted before they run; empty: all of them
	tasks   int
	longest time.Duration // that a handler works; leases are a second
	sound   bool          // there is no bug: one run decides
	found   func(Verdict) bool
}

// maxTries is how many runs a bug has to be found in. Most bugs show in the first one. How likely that is depends on the
// machine, since a bug shows when tasks meet.
const maxTries = 20

func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, p := range []plant{
		{
			name: "leases run out, and nothing else is wrong",
			work: []rewrite{withoutHeartbeats}, tasks: 400, longest: 3 * time.Second,
			sound: true, found: Verdict.OK,
		},
		{
			// The bug shows only by chance: when a handler goes on long after its
			// lease, as one in fifty does, and ends after another one of its task.
			name: "settle without a lease",
			work: []rewrite{withoutHeartbeats, withoutNews, withoutOwner, withoutOwnerElse}, tasks: 1600, longest: 10 * time.Second,
			found: func(v Verdict) bool { return v.StaleSettles > 0 },
		},
		{
			name: "fencing dropped",
			work: []rewrite{allFirst, anyClaim}, endless: true, tasks: 400, longest: 3 * time.Second,
			found: func(v Verdict) bool { return v.Doubled > 0 },
		},
		{
			name:    "enqueue acknowledged before its commit",
			forgets: true, tasks: 400, longest: 3 * time.Second,
			found: func(v Verdict) bool { return v.Lost > 0 },
		},
		{
			name: "callbacks that do not wait",
			work: []rewrite{noneIsPending}, tasks: 400, longest: time.Second,
			found: func(v Verdict) bool { return v.Early > 0 },
		},
		{
			name: "permits taken twice",
			work: []rewrite{noneIsTaken}, tasks: 1000, longest: 3 * time.Second,
			found: func(v Verdict) bool { return v.Exceeded > 0 },
		},
		{
			name: "limits that nobody can count",
			work: []rewrite{noCount}, tasks: 100, longest: time.Second,
			found: func(v Verdict) bool { return v.Exceeded == 1 },
		},
		{
			name: "rates without a window",
			work: []rewrite{noneIsSpent}, only: ratedName, tasks: 1000, longest: time.Second,
			found: func(v Verdict) bool { return v.Exceeded > 0 },
		},
		{
			name: "expired tasks that are claimed",
			work: []rewrite{anyTime, anySince, noneIsOld}, only: expiringName, tasks: 400, longest: time.Second,
			found: func(v Verdict) bool { return v.Exceeded > 0 },
		},
		{
			name: "sequences that are not kept",
			work: []rewrite{noneIsTaken, noneIsLeft}, tasks: 400, longest: time.Second,
			found: func(v Verdict) bool { return v.Early > 0 },
		},
		{
			name:    "unique keys that nobody holds",
			enqueue: []rewrite{noneHolds}, tasks: 400, longest: time.Second,
			found: func(v Verdict) bool { return v.Doubled > 0 },
		},
		{
			name: "ticks taken twice",
			work: []rewrite{anyTick}, endless: true, ticks: 4, tasks: 4, longest: time.Second,
			found: func(v Verdict) bool { return v.Doubled > 0 },
		},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			work, enqueue := planted{rewrites: rewritten(t, p.work...)}, planted{rewrites: rewritten(t, p.enqueue...), forgetsCommit: p.forgets}
			var v Verdict
			var recorded map[string]int
			for seed := range uint64(maxTries) {
				v, recorded = p.run(t, seed, work, enqueue)
				if work.rewrites.allMet() && (p.sound || p.endless || p.found(v)) {
					break
				}
			}
			if !p.found(v) {
				t.Errorf("%d lost, %d doubled, %d stale settles, %d early, %d exceeded: %q", v.Lost, v.Doubled, v.StaleSettles, v.Early, v.Exceeded, v.Findings)
			}
			if v.OK() && recorded["lost"] == 0 {
				t.Error("no lease ran out")
			}
		})
	}
}

// TestARunEndsWithoutItsBug runs jobs that end before a planted change meets a statement, as all expiring jobs do that
// start in time.
func TestARunEndsWithoutItsBug(t *testing.T) {
	t.Parallel()
	work := planted{rewrites: &rewrites{[]rewrite{{"^no statement", "", ""}}, make([]atomic.Bool, 1)}}
	began := time.Now()
	plant{tasks: 26, only: expiringName, longest: time.Second}.run(t, 1, work, planted{rewrites: &rewrites{}})
	if took := time.Since(began); took >= stall {
		t.Errorf("the run took %v", took)
	}
}

// maxIdle is how many moments a run lasts after all its jobs have ended, so that upkeep comes. Work that comes only
// while jobs wait never comes then, and another run follows.
const maxIdle = 10

// run runs jobs drawn from a seed in two workers, until all jobs have ended or some are found that never end. It waits
// until each rewrite has changed a statement, for maxIdle moments after the jobs. It returns the checker's verdict, and
// the number of recorded attempts by outcome.
func (p plant) run(t *testing.T, seed uint64, work, enqueue planted) (v Verdict, recorded map[string]int) {
	role := Role{
		DSN: testdb.DSN(t, testdb.SQLite), Driver: "sqlite", Folder: t.TempDir(), Seed: seed, Policy: policies[0],
		Handlers: 16, Connections: 4, Schedules: p.ticks, Lease: time.Second, Longest: p.longest, Batch: 10, Limited: true,
	}
	db, q := prepare(t, role)
	enqueuer := named(role, "enqueuer")
	enqueuer.Driver, enqueuer.Tasks = register(t, enqueue, "enqueue"), p.tasks
	if err := enqueuer.Enqueue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := deleteParked(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if p.only != "" { // so that each claim takes many of them, on a slow machine, too
		if _, err := db.ExecContext(t.Context(), `delete from "falldue_tasks" where kind <> ?`, p.only); err != nil {
			t.Fatal(err)
		}
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
	// Tasks without an end are given up some time: what they have shown by then is judged.
	const longest = 5 * time.Minute
	working, release := untilStalled(ctx, role.Folder)
	defer release()
	idle := 0
	for deadline := time.Now().Add(longest); working.Err() == nil && (!p.endless || time.Now().Before(deadline)); {
		moment, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		err := drained(moment, q)
		met := work.rewrites.allMet()
		if err == nil && !met {
			<-moment.Done() // upkeep may come after the last task
			idle++
		}
		cancel()
		if !met && idle < maxIdle {
			continue
		}
		if !p.endless && err == nil || p.endless && p.found(judge(t, role.Folder, db, q, Checker{MaxAttempts: maxAttempts})) {
			break // the checker reports the rest as lost
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

// register registers a planted driver with database/sql.
func register(t *testing.T, bug planted, name string) string {
	bug.Driver = &sqlite.Driver{}
	name = fmt.Sprint(t.Name(), " ", name, " ", registered.Add(1)) // a name can be registered once
	sql.Register(name, bug)
	return name
}
