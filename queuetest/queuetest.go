// Package queuetest holds falldue to its promises on any engine and driver: the
// conformance suite. Every case is a sentence that must be true. To hold a
// database of your own to it, call [TestQueue] from a test:
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
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// Harness is what the suite needs of a database.
type Harness struct {
	// DSN makes an empty database and returns how to reach it. It is called
	// once a case.
	DSN func(t *testing.T) string
	// Open opens a pool on that database. A case that needs two workers with
	// nothing in common opens two.
	Open func(dsn string) (*sqlx.DB, error)
	// New makes a queue on a pool. Defaults to [falldue.New].
	New func(db *sqlx.DB, cfg falldue.Config) (*falldue.Queue, error)
	// Only picks the cases whose sentence contains it. Defaults to all.
	Only string
}

// TestQueue runs every case of the suite as a parallel sub-test.
func TestQueue(t *testing.T, h Harness) {
	if h.New == nil {
		h.New = falldue.New
	}
	for _, group := range [][]conformance{enqueueCases, orderCases, retryCases, leaseCases, handlerCases, stopCases} {
		for _, c := range group {
			if !strings.Contains(c.sentence, h.Only) {
				continue
			}
			t.Run(c.sentence, func(t *testing.T) {
				t.Parallel()
				c.check(t, newBench(t, h))
			})
		}
	}
}

// conformance is one promise and how to check it.
type conformance struct {
	sentence string
	check    func(t *testing.T, b *bench)
}

// patience is how long a case waits for what must happen. It is long because
// machines are slow, not because anything takes that long.
const patience = 60 * time.Second

// bench is one case's database, migrated.
type bench struct {
	h   Harness
	dsn string
	db  *sqlx.DB
}

func newBench(t *testing.T, h Harness) *bench {
	b := &bench{h: h, dsn: h.DSN(t)}
	b.db = b.open(t)
	if err := b.queue(t, falldue.Config{}).Migrate(t.Context()); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return b
}

// open opens another pool on the case's database.
func (b *bench) open(t *testing.T) *sqlx.DB {
	t.Helper()
	db, err := b.h.Open(b.dsn)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// queue makes a queue on the case's first pool.
func (b *bench) queue(t *testing.T, cfg falldue.Config) *falldue.Queue {
	t.Helper()
	return b.queueOn(t, b.db, cfg)
}

func (b *bench) queueOn(t *testing.T, db *sqlx.DB, cfg falldue.Config) *falldue.Queue {
	t.Helper()
	if cfg.PollInterval == 0 {
		cfg.PollInterval = 20 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	q, err := b.h.New(db, cfg)
	if err != nil {
		t.Fatalf("new queue: %v", err)
	}
	return q
}

// work runs q until the test ends or the returned function is called, which
// waits for it.
func work(t *testing.T, q *falldue.Queue) (stop func()) {
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

// policy parses a policy's text.
func policy(t *testing.T, text string) backoff.Policy {
	t.Helper()
	p, err := backoff.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// note is the arguments of most tasks of the suite.
type note struct {
	Text string `json:"text"`
}

// enqueue stores one task, with the first of opts if there is one.
func enqueue[A any](t *testing.T, q *falldue.Queue, k falldue.Kind[A], args A, opts ...*falldue.EnqueueOptions) int64 {
	t.Helper()
	id, err := k.Enqueue(t.Context(), q, args, append(opts, nil)[0])
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	return id
}

// receive waits for the next value of c.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

// task reads a task.
func task(t *testing.T, q *falldue.Queue, id int64) falldue.TaskInfo {
	t.Helper()
	info, err := q.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// until waits for a task to be as ok says.
func until(t *testing.T, q *falldue.Queue, id int64, what string, ok func(falldue.TaskInfo) bool) falldue.TaskInfo {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		info := task(t, q, id)
		if ok(info) {
			return info
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for task %d to be %s; it is %+v", patience, id, what, info)
		}
		<-tick.C
	}
}

func untilState(t *testing.T, q *falldue.Queue, id int64, s falldue.State) falldue.TaskInfo {
	t.Helper()
	return until(t, q, id, string(s), func(i falldue.TaskInfo) bool { return i.State == s })
}

// untilGone waits for a task to be done and deleted.
func untilGone(t *testing.T, q *falldue.Queue, id int64) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := q.Task(t.Context(), id)
		if errors.Is(err, falldue.ErrNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for task %d to be gone; it is %+v", patience, id, info)
		}
		<-tick.C
	}
}

var errFlaky = errors.New("flaky")
