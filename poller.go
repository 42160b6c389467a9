package falldue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/falldue/falldue/internal/build"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/worker"
	"github.com/falldue/falldue/sqlgen"
)

// Run claims tasks from the configured queues and runs their handlers until ctx ends. Then it
// claims no more tasks, releases claimed tasks that have not started, and waits up to
// Config.ShutdownTimeout for running handlers. After that it cancels the contexts of handlers
// that still run, waits for those, too, and returns nil. Without Config.StuckTimeout, Run waits
// even for a handler that ignores its context, and keeps extending the lease of its task.
//
// Run returns an error that wraps [ErrStuck] if handlers that were given up still run.
//
// Run returns an error immediately
//   - when there are no handlers, a kind is invalid, or a handler or middleware is nil
//     ([ErrInvalid]),
//   - when the tables are missing or not up to date ([ErrNotMigrated]),
//   - when the database does not answer,
//   - when, for at least one policy, the database computes other delays than Go,
//   - when Run is already running.
//
// If the database fails later, Run logs that, and tries again until it answers.
func (q *Queue) Run(ctx context.Context) (err error) {
	defer func() { q.life.Returned(err) }()
	handlers, err := q.handlers()
	if err == nil && len(handlers) == 0 {
		err = invalid("no handlers: call Handle before Run")
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := worker.New(ctx, stop, q.workerConfig(handlers), q.store, q.policies, q.observer)
	if !q.life.Begin(w) {
		return errors.New("falldue: Run is already running")
	}
	defer q.life.End()
	if err = q.preflight(ctx, handlers); err == nil {
		err = w.Refresh(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil // stopped before it began
	case err != nil:
		return err
	}
	if q.db.Stats().MaxOpenConnections == 1 && !q.store.Server().Caps.SingleWriter {
		q.cfg.Logger.Warn("falldue: the pool has one connection; a handler that holds it for longer than a lease loses its task. "+
			"Allow 2 or more (SetMaxOpenConns, or pool_max_conns of pgx), or give handlers another pool", "lease", q.cfg.Lease)
	}
	defer q.store.Reserve()()
	return w.Run()
}

// preflight checks that the database computes the delays of all policies as Go
// does, and that the tables are up to date.
func (q *Queue) preflight(ctx context.Context, handlers map[string]*run.Handler) error {
	ctx, cancel := context.WithTimeout(ctx, retry.StatementTimeout)
	defer cancel()
	delays := make([]sqlgen.Formula, 0, len(handlers))
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		delays = append(delays, handlers[name].Policy.Policy.Delay())
	}
	if err := q.store.CheckDelays(ctx, delays); err != nil {
		return err
	}
	if err := q.store.CheckTables(ctx); err != nil {
		return fmt.Errorf("check the tables: %w", err)
	}
	return nil
}

// Wake makes the worker of this process look for tasks immediately. On PostgreSQL it also
// wakes the workers of other processes that listen. Call Wake after the commit of a
// transaction in which tasks were enqueued. An enqueue without a transaction notifies these
// workers itself. Wake does not wait for anything.
func (q *Queue) Wake() {
	if w := q.life.Worker(); w != nil {
		w.Wake()
	}
	if q.notifier != nil {
		q.notifier.Add("")
	}
}

// enqueued notifies the worker of this process, if Run is running, of tasks that
// were just stored.
func (q *Queue) enqueued(entries []store.Entry) {
	if w := q.life.Worker(); w != nil {
		w.Enqueued(entries)
	}
}

// announce notifies workers of tasks that were just stored: the worker of this process, if Run is
// running, and on PostgreSQL the workers of other processes that listen.
func (q *Queue) announce(stored []store.Entry) {
	q.enqueued(stored)
	for i, e := range stored {
		if q.notifier != nil && (i == 0 || e.Queue != stored[i-1].Queue) {
			q.notifier.Add(e.Queue)
		}
	}
}

// registration is a kind with its handler.
type registration struct {
	kind
	fn         handlerFunc // without middleware of users
	middleware []Middleware
}

// handlers returns the handlers as workers have them, by kind, and the errors of their
// registrations.
func (q *Queue) handlers() (map[string]*run.Handler, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	handlers := make(map[string]*run.Handler, len(q.kinds))
	for name, r := range q.kinds {
		fn := handlerAround(r.fn, slices.Concat(q.use, r.middleware))
		handlers[name] = &run.Handler{
			Kind: name, Queue: r.Queue, Priority: r.Priority, Timeout: r.Timeout, Limits: limitsOf("kind "+name, r.Limits),
			LostRetries: r.ImmediateLostRetries, Retention: r.retention(q.cfg), Weight: r.Weight, Policy: control.Compile(r.Policy),
			Run: func(ctx context.Context, t *run.Run) *outcome.Failure { return outcome.ToEnd(fn(ctx, t)) },
		}
	}
	return handlers, errors.Join(q.handlerErrs...)
}

// workerConfig returns the settings of a worker of the queue.
func (q *Queue) workerConfig(handlers map[string]*run.Handler) worker.Config {
	cfg, codec := q.cfg, q.cfg.Codec
	w := worker.Config{
		ID: cfg.workerID(), Queues: map[string]worker.Queue{}, Handlers: handlers,
		PollInterval: cfg.PollInterval, Lease: cfg.Lease, ShutdownTimeout: cfg.ShutdownTimeout, MaxPayload: cfg.MaxPayload,
		Stuck: run.StuckConfig{After: cfg.StuckTimeout, Most: cfg.MaxStuck, Failure: cfg.stuckFailure},
		Encode: func(kind, column string, id int64, json []byte) (string, error) {
			return q.encode(Place{kind, column, id}, json)
		},
		Decode: func(kind, column string, id int64, stored []byte) ([]byte, error) {
			return decode(codec, Place{kind, column, id}, stored)
		},
		OthersRetention: cfg.retentionOfOthers(), Listen: cfg.Notifications.Listen, NoHistory: cfg.NoHistory, Log: cfg.Logger,
	}
	for name, queue := range cfg.Queues {
		w.Queues[name] = worker.Queue{
			Concurrency: queue.Concurrency, MaxPrefetch: queue.MaxPrefetch, LowShare: queue.LowPriorityShare,
			Limits: limitsOf("queue "+name, queue.Limits),
		}
	}
	w.Info = infoOf(w, q.release())
	return w
}

// release returns the release of the program.
func (q *Queue) release() string { return cmp.Or(q.cfg.Release, build.Release()) }

// infoOf returns the description of a worker for its heartbeats.
func infoOf(cfg worker.Config, release string) store.WorkerInfo {
	host, _ := os.Hostname()
	info := store.WorkerInfo{
		Host: host, PID: os.Getpid(), Release: release, Library: build.Library(),
		Queues: map[string]store.WorkerQueue{}, Kinds: map[string]store.WorkerKind{},
	}
	for name, queue := range cfg.Queues {
		info.Queues[name] = store.WorkerQueue{Concurrency: queue.Concurrency, Limits: queue.Limits}
	}
	for name, h := range cfg.Handlers {
		info.Kinds[name] = store.WorkerKind{Policy: h.Policy.Policy.String(), Timeout: h.Timeout, Limits: h.Limits}
	}
	return info
}
