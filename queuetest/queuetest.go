// Package queuetest is the conformance suite of falldue. The suite checks the guarantees that falldue gives on every
// engine and driver. The name of each case is a sentence that must be true. To run the suite on your own database or
// driver, call [TestQueue] from a test:
//
//	func TestConformance(t *testing.T) {
//		queuetest.TestQueue(t, queuetest.Harness{
//			DSN:  func(t *testing.T) string { … a new, empty database … },
//			Open: func(dsn string) (*sqlx.DB, error) { return sqlx.Open("postgres", dsn) },
//		})
//	}
package queuetest

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// Harness gives the suite access to databases. DSN and Open are required.
type Harness struct {
	// DSN creates an empty database and returns its DSN. It is called once for
	// each case, from concurrent subtests. Drop the database with t.Cleanup: the
	// suite closes its pools first.
	DSN func(t *testing.T) string
	// Open opens a connection pool on that database. A case calls Open again for each worker that must not share a pool
	// with another worker.
	Open func(dsn string) (*sqlx.DB, error)
	// New makes a queue on a pool. Defaults to [falldue.New].
	New func(db *sqlx.DB, cfg falldue.Config) (*falldue.Queue, error)
	// Begin begins a transaction on a pool that Open returned, as a program begins its
	// own transactions with the driver's library. opts may be nil. Defaults to a function that
	// calls db.BeginTxx.
	Begin func(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions) (*Transaction, error)
	// OnlyCallersTx selects the cases that use Begin.
	OnlyCallersTx bool
	// Only selects the cases whose names contain this text. Defaults to all cases. The
	// test fails if no case is selected.
	Only string
}

// Transaction is a transaction that the calling program has begun. Tx is the value that the program passes to falldue,
// for example to EnqueueTx.
type Transaction struct {
	falldue.Tx
	Commit, Rollback func() error
}

// TestQueue runs each case of the suite as a parallel subtest.
func TestQueue(t *testing.T, h Harness) {
	if h.New == nil {
		h.New = falldue.New
	}
	if h.Begin == nil {
		h.Begin = beginSqlx
	}
	selected := 0
	// The cases that take longest begin first.
	for _, group := range [][]conformanceCase{leaseCases, enqueueCases, orderCases, retryCases, limitCases, keptPermitCases, handlerCases, progressCases, stepCases, changeCases, policyCases, bulkCases, filterCases, phaseCases, codecCases, metadataCases, middlewareCases, enqueueMiddlewareCases, eventCases, uniqueCases, uniqueTxCases, flowCases, flowTxCases, periodicCases, stopCases, historyCases, expiryCases, manyCases, patternCases} {
		for _, c := range group {
			if !strings.Contains(c.sentence, h.Only) || h.OnlyCallersTx && !callersTx[c.sentence] {
				continue
			}
			selected++
			t.Run(c.sentence, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, h)
				f.callersTx = callersTx[c.sentence]
				c.check(t, f)
			})
		}
	}
	if selected == 0 {
		t.Errorf("no case has a name that contains %q (OnlyCallersTx: %v)", h.Only, h.OnlyCallersTx)
	}
}

// conformanceCase is one guarantee and its check.
type conformanceCase struct {
	sentence string
	check    func(t *testing.T, f *fixture)
}

// callersTx has the sentences of the cases that begin transactions of the caller's.
var callersTx = map[string]bool{}

// inCallersTx returns a case that begins transactions of the caller's.
func inCallersTx(sentence string, check func(t *testing.T, f *fixture)) conformanceCase {
	callersTx[sentence] = true
	return conformanceCase{sentence, check}
}

func beginSqlx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions) (*Transaction, error) {
	tx, err := db.BeginTxx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &Transaction{tx, tx.Commit, tx.Rollback}, nil
}

// waitTimeout is how long a case waits for an event. Events take far less; the
// timeout is long only because a machine may be slow.
const waitTimeout = 5 * time.Minute

// fixture is the database of one case, after Migrate.
type fixture struct {
	h         Harness
	dsn       string
	db        *sqlx.DB
	callersTx bool // the case may begin transactions of the caller's
}

func newFixture(t *testing.T, h Harness) *fixture {
	f := &fixture{h: h, dsn: h.DSN(t)}
	f.db = f.open(t)
	if err := f.queue(t, falldue.Config{}).Migrate(t.Context()); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return f
}

// open opens another connection pool on the database of the case.
func (f *fixture) open(t *testing.T) *sqlx.DB {
	t.Helper()
	db, err := f.h.Open(f.dsn)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// begin begins a transaction of the caller's on the first connection pool of the case.
func (f *fixture) begin(ctx context.Context, opts *sql.TxOptions) (*Transaction, error) {
	if !f.callersTx {
		return nil, errors.New("the case begins a transaction: make it by inCallersTx")
	}
	return f.h.Begin(ctx, f.db, opts)
}

func (f *fixture) mustBegin(t *testing.T) *Transaction {
	t.Helper()
	tx, err := f.begin(t.Context(), nil)
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	return tx
}

// queue returns a queue on the first connection pool of the case.
func (f *fixture) queue(t *testing.T, cfg falldue.Config) *falldue.Queue {
	t.Helper()
	return f.queueOn(t, f.db, cfg)
}

func (f *fixture) queueOn(t *testing.T, db *sqlx.DB, cfg falldue.Config) *falldue.Queue {
	t.Helper()
	if cfg.PollInterval == 0 {
		cfg.PollInterval = 20 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var q *falldue.Queue
	err := context.DeadlineExceeded
	for tries := 0; tries < 3 && errors.Is(err, context.DeadlineExceeded); tries++ { // a busy server can take too long
		q, err = f.h.New(db, cfg)
	}
	if err != nil {
		t.Fatalf("new queue: %v", err)
	}
	return q
}

// endLeases makes the database take the leases of some tasks for ended. Their workers notice it
// when they extend them.
func (f *fixture) endLeases(t *testing.T, where string) {
	t.Helper()
	if _, err := f.db.ExecContext(t.Context(), "update falldue_tasks set updated_at = created_at where claimed_by <> '' and "+where); err != nil {
		t.Fatal(err)
	}
}

// startWorker runs q until the test ends or stop is called. stop waits for Run to
// return.
func startWorker(t *testing.T, q *falldue.Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := q.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// parsePolicy parses the text of a policy.
func parsePolicy(t *testing.T, text string) backoff.Policy {
	t.Helper()
	p, err := backoff.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// noteArgs are the arguments of most tasks of the suite.
type noteArgs struct {
	Text string `json:"text"`
}

// enqueue stores one task and returns its ID.
func enqueue[A any](t *testing.T, q *falldue.Queue, k falldue.Kind[A], args A, opts ...falldue.EnqueueOptions) int64 {
	t.Helper()
	receipt, err := k.Enqueue(t.Context(), q, args, opts...)
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	return receipt.ID
}

// receive waits for the next value of c. what describes the value.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitTimeout):
		t.Fatalf("waited %v for %s", waitTimeout, what)
		panic("unreachable")
	}
}

// readTask returns the stored state of a task.
func readTask(t *testing.T, q *falldue.Queue, id int64) falldue.TaskInfo {
	t.Helper()
	info, err := q.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// soon calls set with the database's time, which it reads with a task, plus a duration. If a busy machine
// calls set after that time, soon calls set again with a longer duration. It returns the time that set took.
func soon(t *testing.T, q *falldue.Queue, id int64, in time.Duration, set func(time.Time) error) time.Time {
	t.Helper()
	for {
		at := readTask(t, q, id).Now.Add(in)
		err := set(at)
		if err == nil {
			return at
		}
		if in *= 4; !errors.Is(err, falldue.ErrInvalid) || in > waitTimeout {
			t.Fatal(err)
		}
	}
}

// pause is the time between two polls of a condition without an event. It grows from 5 to 50
// milliseconds, so that long waits leave the machine to what they wait for.
type pause struct {
	length   time.Duration
	deadline time.Time
}

func newPause() *pause {
	return &pause{length: 5 * time.Millisecond, deadline: time.Now().Add(waitTimeout)}
}

// next waits for the next poll, and reports whether there is time for it.
func (p *pause) next() bool {
	<-time.After(p.length)
	p.length = min(p.length*5/4, 50*time.Millisecond)
	return time.Now().Before(p.deadline)
}

// waitFor waits until ok reports true for a task. what describes that state.
func waitFor(t *testing.T, q *falldue.Queue, id int64, what string, ok func(falldue.TaskInfo) bool) falldue.TaskInfo {
	t.Helper()
	for pause := newPause(); ; {
		info := readTask(t, q, id)
		if ok(info) {
			return info
		}
		if !pause.next() {
			t.Fatalf("waited %v for task %d to be %s; it is %+v", waitTimeout, id, what, info)
		}
	}
}

func waitForState(t *testing.T, q *falldue.Queue, id int64, s falldue.State) falldue.TaskInfo {
	t.Helper()
	return waitFor(t, q, id, string(s), func(i falldue.TaskInfo) bool { return i.State == s })
}

// waitForDeletion waits until a task has been deleted.
func waitForDeletion(t *testing.T, q *falldue.Queue, id int64) {
	t.Helper()
	for pause := newPause(); ; {
		info, err := q.Task(t.Context(), id)
		if errors.Is(err, falldue.ErrNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !pause.next() {
			t.Fatalf("waited %v for task %d to be deleted; it is %+v", waitTimeout, id, info)
		}
	}
}

var errFlaky = errors.New("flaky")

// listed returns the tasks of a page.
func listed(p ops.Page, err error) ([]falldue.TaskInfo, error) { return p.Tasks, err }
