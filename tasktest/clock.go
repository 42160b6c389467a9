package tasktest

import (
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

// Clock is the clock of a database, which a test can move ahead. Real time also passes on it. All queues that use the
// clock see the same time, even in other processes.
type Clock struct {
	clock *store.TestClock
}

// NewClock returns the clock of db. From then on until the test ends, every queue that [falldue.New] makes on db uses
// the clock: make the queue after the clock. To share the clock, another process, or a test with another pool on the
// same database, calls NewClock, too.
//
// The clock is a table, falldue_test_clock, which stays in the database. The next test on that database continues at
// the time at which the previous test stopped. Use NewClock only on databases for tests. Tasks enqueued by a queue
// without the clock, or by a queue made before NewClock, keep their times.
//
// Queues that package pgxqueue makes on a *pgxpool.Pool of that database use the clock, too, if you pass the pool in
// pools.
func NewClock(t testing.TB, db *sqlx.DB, pools ...any) *Clock {
	t.Helper()
	clock, err := store.OpenTestClock(t.Context(), db, pools...)
	if err != nil {
		t.Fatalf("tasktest: make the test clock: %v", err)
	}
	t.Cleanup(clock.Close)
	return &Clock{clock}
}

// Now returns the time of the clock.
func (c *Clock) Now(t testing.TB) time.Time {
	t.Helper()
	now, err := c.clock.Now(t.Context())
	if err != nil {
		t.Fatalf("tasktest: read the test clock: %v", err)
	}
	return now
}

// Jump moves the clock ahead by d in one step, even while tasks run. Leases shorter than d expire, as if the workers
// had died, and other workers run these tasks again. Use Jump to test such a loss, and [Clock.Advance] for all other
// tests.
func (c *Clock) Jump(t testing.TB, d time.Duration) {
	t.Helper()
	if d < 0 {
		t.Fatalf("tasktest: move the clock by %v: must be 0 or more", d)
	}
	if err := c.clock.Move(t.Context(), d); err != nil {
		t.Fatalf("tasktest: move the test clock: %v", err)
	}
}

// Advance moves the clock ahead by d, and runs each task when it falls due, as [Drain] does. Advance returns the tasks
// in the order in which they ran. The clock jumps from one due time to the next, so a day of retries takes only as long
// as its runs.
//
// Advance runs the tasks that q would run: in the queues of its configuration, of kinds that it handles. q needs no
// handlers if workers of other queues or processes run the tasks. The clock also stops when a limit admits a task that
// it has delayed, and when a pause or a policy override ends. Schedules of q (package periodic) enqueue their tasks when
// the clock reaches their ticks. At each stop and at the end, Advance also deletes the tasks whose retention has
// expired, and cancels or unblocks tasks that depend on others, as workers do.
//
// Before it moves the clock, Advance waits until no worker of any process runs a task in q's tables, since the task's
// lease would expire. It fails the test if a task runs for longer than 10 seconds.
//
// When Advance has moved the clock, workers of this process that q.Run has started look for tasks immediately, and
// workers of other processes at their next poll. Commit your transactions first: on MySQL and MariaDB, a transaction
// that has enqueued keeps the clock locked.
func (c *Clock) Advance(t testing.TB, q *falldue.Queue, d time.Duration) (list []Ran) {
	t.Helper()
	if d < 0 {
		t.Fatalf("tasktest: move the clock by %v: must be 0 or more", d)
	}
	requireQueue(t, q)
	if uses, _ := hooks.StoreOf(q).HasTestClock(); !uses {
		t.Fatal(lateClock)
	}
	end := c.Now(t).Add(d)
	for {
		tick := tickAll(t, q)
		ran, next := drainAll(t, q)
		list = append(list, ran...)
		if tick >= 0 && (next < 0 || tick < next) {
			next = tick
		}
		left := end.Sub(c.Now(t))
		if left <= 0 {
			return list
		}
		if next < 0 || next > left {
			next = left
		}
		c.Jump(t, next)
		q.Wake()
	}
}

// lateClock is the error for a queue that keeps the database's clock.
const lateClock = "tasktest: the queue does not use the test clock, since it was made before NewClock or on another pool: call NewClock first, then falldue.New on the same pool"

// tickAll enqueues the periodic tasks of q that are due, and returns how long it is until
// the next one is, or a negative duration.
func tickAll(t testing.TB, q *falldue.Queue) (next time.Duration) {
	t.Helper()
	next = -1
	for _, tick := range hooks.Of[queue](q).Tickers() {
		wait, err := tick(t.Context())
		if err != nil {
			t.Fatalf("tasktest: enqueue periodic tasks: %v", err)
		}
		if wait >= 0 && (next < 0 || wait < next) {
			next = wait
		}
	}
	return next
}

// drainAll runs tasks until none is due, none runs anywhere, and nothing remains to delete or
// opened.
func drainAll(t testing.TB, q *falldue.Queue) (list []Ran, next time.Duration) {
	t.Helper()
	for {
		if err := hooks.Of[queue](q).CleanAndJudge(t.Context()); err != nil {
			t.Fatalf("tasktest: check tasks that depend on others: %v", err)
		}
		ran, next := drain(t, q)
		list = append(list, ran...)
		if !waitForWorkers(t, q) && len(ran) == 0 {
			return list, next
		}
	}
}

// maxRunning is how long a task may run while Advance waits for it.
var maxRunning = 10 * time.Second

// waitForWorkers waits until no worker runs a task, and reports whether one did.
func waitForWorkers(t testing.TB, q *falldue.Queue) (waited bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for {
		running, err := hooks.StoreOf(q).Running(t.Context())
		if err != nil {
			t.Fatalf("tasktest: look for running tasks: %v", err)
		}
		if running == "" {
			return waited
		}
		if waited = true; time.Since(begun) > maxRunning {
			t.Fatalf("tasktest: the clock cannot be moved while a task runs, since the task's lease would end: %s has run for more than %v", running, maxRunning)
		}
		<-tick.C
	}
}
