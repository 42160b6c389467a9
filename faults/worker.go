package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/many"
	"github.com/falldue/falldue/periodic"
)

// Role is the configuration of a process of a run.
type Role struct {
	// Name is the name of the process in the history.
	Name string
	// Driver and DSN are those of the database.
	Driver, DSN string
	// Folder is where the histories are.
	Folder string
	Seed   uint64
	// ClockJumps makes the process's time of day jump back and forth.
	ClockJumps bool
	// ClockOff is by how much the process's time of day is wrong.
	ClockOff time.Duration
	// Pooled says that the process connects through a pooler in transaction mode.
	Pooled bool

	// Handlers is how many handlers a worker runs at the same time, Connections
	// how many connections the process has.
	Handlers, Connections int
	// Schedules is how many schedules a worker ticks, each of them once a second.
	Schedules int
	// Notify sets when enqueues notify workers.
	Notify falldue.NotifyMode
	// Lease is the lease of a worker, Longest the longest time that its handlers
	// take.
	Lease, Longest time.Duration

	// Policy is the policy of all kinds.
	Policy string
	// Limited makes an enqueuer enqueue limited and ordered jobs, too.
	Limited bool

	// Tasks is how many tasks an enqueuer enqueues. 0 means that it goes on until
	// it is stopped.
	Tasks int
	// Batch is the largest number of tasks that it enqueues at once.
	Batch int
	// Pause is how long it waits between two enqueues.
	Pause time.Duration
}

// openTime is how long a process waits for its server. No fault lasts as long.
const openTime = time.Minute

// open opens the role's pool and a queue on it. It waits for a server that does not
// answer yet. onStuck is called for handlers that the worker gives up.
func (r Role) open(ctx context.Context, onStuck func(falldue.RunInfo, error) error) (*sqlx.DB, *falldue.Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	db, err := testdb.OpenDSN(r.Driver, r.DSN)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(r.Connections)
	testdb.KeepIdle(db, r.Connections)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", r.Name)
	for {
		q, err := falldue.New(db, falldue.Config{
			Name: r.Name, Concurrency: r.Handlers, Lease: r.Lease, Logger: log,
			DoneRetention: 24 * time.Hour, PollInterval: 100 * time.Millisecond, TransactionPooling: r.Pooled, Notifications: falldue.Notifications{Mode: r.Notify},
			StuckTimeout: stuckTimeout, MaxStuck: math.MaxInt, OnStuck: onStuck, // without an end, since the process does not end by itself
		})
		if err == nil {
			return db, q, nil
		}
		if errors.Is(err, falldue.ErrInvalid) || errors.Is(err, dialect.ErrUnsupported) {
			return nil, nil, err
		}
		log.Warn("cannot open the queue", "error", err)
		select {
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// worker is a process that runs jobs and writes a history.
type worker struct {
	Role
	db      *sqlx.DB
	queue   *falldue.Queue
	history *History
	insert  string        // of an effect
	ended   chan struct{} // closed when the work has ended
	count   string        // of limited jobs that run
}

// Work runs jobs until ctx ends.
func (r Role) Work(ctx context.Context) error {
	history, err := OpenHistory(r.Folder, r.Name)
	if err != nil {
		return err
	}
	defer history.Close()
	w := &worker{Role: r, history: history, ended: make(chan struct{})}
	defer close(w.ended)
	db, q, err := r.open(ctx, w.onStuck)
	if err != nil {
		return unless(ctx, err)
	}
	defer db.Close()
	w.db, w.queue, w.insert, w.count = db, q, insertEffect(q.Engine()), countLimited(hooks.StoreOf(q).Server())
	kinds, err := newKinds(r.Policy)
	if err != nil {
		return err
	}
	falldue.Handle(q, kinds.plain, w.plain)
	falldue.Handle(q, kinds.transactional, w.transactional)
	falldue.Handle(q, kinds.limited, w.limited)
	falldue.Handle(q, kinds.ordered, w.plain)
	falldue.Handle(q, kinds.rated, w.noted)
	falldue.Handle(q, kinds.changed, w.plain)
	falldue.Handle(q, kinds.stepped, w.stepped)
	many.Handle(q, kinds.gathered, w.batches(), w.gathered)
	falldue.Handle(q, kinds.amended, w.amended)
	falldue.Handle(q, kinds.stubborn, w.stubborn)
	falldue.Handle(q, kinds.halting, w.plain)
	falldue.Handle(q, kinds.expiring, w.noted)
	falldue.Handle(q, kinds.repeated, w.repeated)
	run := q.Run
	if r.Schedules > 0 {
		schedules, err := periodic.New(q, secondly(kinds.plain, r.Schedules)...)
		if err != nil {
			return err
		}
		run = schedules.RunWorker
	}
	for {
		err := run(ctx)
		if ctx.Err() != nil && errors.Is(err, falldue.ErrStuck) {
			return nil // some handlers never return
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, falldue.ErrInvalid) || errors.Is(err, falldue.ErrNotMigrated) {
			return err
		}
		slog.Warn("cannot run", "process", r.Name, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unless returns err, or nil if ctx has ended.
func unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// plain runs a job that falldue settles.
func (w *worker) plain(ctx context.Context, t falldue.Task[Job]) error {
	if t.Fence == 1 && holdOf(t.Args.Unique).byClaim() {
		w.noteClaim(ctx, t) // the claim releases the key
	}
	report(t, 0)
	p := w.begin(ctx, t)
	if err := t.SetResult(t.Fence); err != nil {
		return err
	}
	report(t, 1)
	return w.end(ctx, t, p)
}

// transactional runs a job that settles itself, together with an effect.
func (w *worker) transactional(ctx context.Context, t falldue.Task[Job]) error {
	return w.complete(ctx, t, w.begin(ctx, t))
}

// complete ends a run of a job that settles itself, as planned.
func (w *worker) complete(ctx context.Context, t falldue.Task[Job], p plan) error {
	if p.outcome != OutcomeDone {
		return w.end(ctx, t, p)
	}
	if err := t.SetResult(t.Fence); err != nil {
		return err
	}
	tx, err := w.effect(ctx, t)
	if err != nil {
		p.outcome = OutcomeFailed
		return errors.Join(err, w.end(ctx, t, p))
	}
	defer tx.close()
	w.write(Ended, t, OutcomeDone)
	if err := tx.Commit(); err != nil {
		w.write(Ended, t, OutcomeUnsure)
		return err
	}
	w.write(Committed, t, "")
	return nil
}

// effect begins a transaction in which it writes an effect and ends the task.
func (w *worker) effect(ctx context.Context, t falldue.Task[Job]) (*transaction, error) {
	tx, err := begin(ctx, w.db)
	if err != nil {
		return nil, err
	}
	if _, err = tx.ExecContext(ctx, w.insert, t.ID, t.Fence, 0); err == nil {
		err = t.DoneTx(ctx, tx)
	}
	if err != nil {
		tx.close()
		return nil, err
	}
	return tx, nil
}

// begin records that a handler started, and works for as long as planned.
func (w *worker) begin(ctx context.Context, t falldue.Task[Job]) plan {
	w.write(Started, t, "")
	p := planFor(w.Seed, t.Args, t.Fence, w.Longest)
	p.work(ctx)
	return p
}

// end records how a handler ends, and returns the handler's error for that.
func (w *worker) end(ctx context.Context, t falldue.Task[Job], p plan) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, falldue.ErrLeaseLost) && !p.blind:
		p.outcome = OutcomeLost
	case p.outcome != OutcomeDone && errors.Is(cause, falldue.ErrStopping):
		p.outcome = OutcomeStopped
	}
	w.write(Ended, t, p.outcome)
	reason := fmt.Errorf("claim %d %s on purpose", t.Fence, p.outcome)
	switch {
	case p.outcome == OutcomeDone:
		return nil
	case p.outcome == OutcomeSnoozed:
		return falldue.Snooze(p.wait)
	case p.outcome == OutcomeDiscarded:
		return falldue.Discard(reason)
	case p.panics:
		panic(reason)
	case p.wait > 0:
		return falldue.RetryAfter(p.wait, reason)
	}
	return reason
}

func (w *worker) write(what string, t falldue.Task[Job], outcome string) {
	w.history.Write(Event{What: what, Key: t.Args.Key, ID: t.ID, Fence: t.Fence, Attempt: t.Attempt, Outcome: outcome})
}
