package falldue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/worker"
)

// internals has the methods of a queue that only other packages of this module use. Each package declares the methods
// that it needs as an interface, and gets them from [hooks.Of].
type internals struct{ q *Queue }

// taskInternals has the methods of a task for packages tasktest and steps.
type taskInternals struct{ calls *hooks.TaskCalls }

// SetCalls sets what the methods of the task call, and Calls returns it, or nil.
func (t taskInternals) SetCalls(calls hooks.TaskCalls) { *t.calls = calls }
func (t taskInternals) Calls() hooks.TaskCalls         { return *t.calls }

// Decoded returns the JSON that the queue's codec has encoded for a place.
func (s internals) Decoded(p Place, stored []byte) ([]byte, error) {
	return decode(s.q.cfg.Codec, p, stored)
}

// paramsInternals has the methods of a task to enqueue for package signals.
type paramsInternals struct{ *EnqueueParams }

// Queue returns the queue in which the task will wait.
func (p paramsInternals) Queue() string {
	queue := p.options().Queue
	if queue == "" && p.kind != nil {
		queue = p.kind.Queue
	}
	return queue
}

func init() {
	hooks.Open = func(x any) any {
		switch x := x.(type) {
		case *Queue:
			return internals{x}
		case *EnqueueParams:
			return paramsInternals{x}
		}
		return taskInternals{x.(interface{ calls() *hooks.TaskCalls }).calls()}
	}
}

// Store returns the queue's store.
func (s internals) Store() *store.Store { return s.q.store }

// Logger returns the queue's logger, and SparseLogger the logger of background loops, whose
// failures are also events for hooks.
func (s internals) Logger() *slog.Logger { return s.q.cfg.Logger }
func (s internals) SparseLogger() *slog.Logger {
	return retry.Sparse(s.q.cfg.Logger, s.q.store.Classify, s.q.observer.Trouble)
}

// Health returns the health of this process's worker.
func (s internals) Health() worker.Health { return s.q.life.Health(s.q.store) }

// Enqueued wakes the workers for tasks that have been stored.
func (s internals) Enqueued(entries []store.Entry) { s.q.announce(entries) }

// For package tasktest:

// RunOne claims the task that is due first, runs its handler in this goroutine, and settles it. If there is no due task
// for the queue to run, RunOne returns nil and the time until one falls due or a limit admits one. The time is negative
// if there is none.
func (s internals) RunOne(ctx context.Context) (ran *worker.Ran, next time.Duration, err error) {
	err = s.step(ctx, func(w *worker.Worker) error {
		ran, next, err = w.RunOne(ctx)
		return err
	})
	return ran, next, err
}

// CleanAndJudge does two jobs that a worker does from time to time: it deletes the finished tasks whose retention has
// expired, and it unblocks or cancels tasks whose dependencies have ended.
func (s internals) CleanAndJudge(ctx context.Context) error {
	return s.step(ctx, func(w *worker.Worker) error { return w.CleanAndJudge(ctx) })
}

// step makes a worker that does not run, and lets f use it.
func (s internals) step(ctx context.Context, f func(*worker.Worker) error) error {
	handlers, err := s.q.handlers()
	if err != nil {
		return err
	}
	cfg := s.q.workerConfig(handlers)
	cfg.Opened = func(context.Context, string) { s.q.Wake() } // the worker does not look for tasks itself
	w := worker.NewStepper(ctx, cfg, s.q.store, s.q.policies, s.q.observer)
	defer s.q.stepping(w)()
	if err := w.Refresh(ctx); err != nil {
		return err
	}
	return f(w)
}

// Handles returns the names of the queues and of the kinds with handlers, sorted.
func (s internals) Handles() (queues, kinds []string) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return slices.Sorted(maps.Keys(s.q.cfg.Queues)), slices.Sorted(maps.Keys(s.q.kinds))
}

// For package flow:

// EnqueueFlow stores tasks that depend on each other. tx is the caller's transaction, or nil.
func (s internals) EnqueueFlow(ctx context.Context, tx Tx, params []EnqueueParams, flow store.Flow) ([]int64, error) {
	if tx != nil {
		if err := checkTx(tx); err != nil {
			return nil, err
		}
	}
	if len(params) == 0 {
		return nil, nil
	}
	put := func(ctx context.Context, tasks []EnqueueParams) ([]Receipt, error) {
		return s.putFlow(ctx, tx, tasks, len(params), flow)
	}
	fn := EnqueueFunc(func(ctx context.Context, _ Tx, tasks []EnqueueParams) ([]Receipt, error) { return put(ctx, tasks) })
	if around := s.q.aroundEnqueue.Load(); around != nil {
		fn = *around
	}
	receipts, err := throughMiddleware(ctx, tx, fn, len(params), func(i int) EnqueueParams {
		p := params[i]
		p.put, p.place = put, i
		return p
	})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(receipts))
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids, nil
}

func (s internals) putFlow(ctx context.Context, tx Tx, tasks []EnqueueParams, n int, flow store.Flow) ([]Receipt, error) {
	if len(tasks) != n {
		return nil, invalid("%d tasks from middleware for %d tasks of a flow: must be one for each", len(tasks), n)
	}
	for i, t := range tasks {
		if t.put != nil && t.place != i {
			return nil, invalid("task %d of a flow, %s, is task %d after middleware: middleware must not change the order", t.place, t.Kind(), i)
		}
	}
	members := map[int]bool{}
	for _, e := range flow.Edges {
		members[e.Member] = true
	}
	p, err := s.q.check(n, func(i int) EnqueueParams {
		t := tasks[i]
		t.marks = nil
		if members[i] || flow.Sibling != 0 {
			t.marks = append(t.marks, store.MemberMark)
		}
		if _, waits := flow.Waiters[i]; waits {
			t.marks = append(t.marks, store.WaiterMark)
		}
		return t
	})
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		if tasks[i].options().Unique.isSet() {
			return nil, invalid("task %d, %s, has Unique: must not be set in a flow, since an existing task cannot get dependencies", i, tasks[i].Kind())
		}
	}
	p.flow = &flow
	return s.q.insert(ctx, tx, p)
}

// For package periodic:

// Entry returns the task that p describes, as schedules store it, and a hash of its kind and its
// arguments before the codec encodes them. The error names a setting that the tasks of a schedule
// cannot have.
func (s internals) Entry(p EnqueueParams) (e store.Entry, hash string, err error) {
	if p.kind == nil {
		return e, "", invalid("the task has empty EnqueueParams or an empty Kind: make them with NewKind and Kind.Params")
	}
	if delay := p.options().Delay; delay != 0 {
		return e, "", invalid("Delay %v is set: must be 0, since the tick sets the time", delay)
	}
	if err := p.options().schedulable(); err != nil {
		return e, "", err
	}
	if e, err = s.q.entry(&p); err != nil {
		return e, "", fmt.Errorf("kind %.100q: %w", p.kind.name, err)
	}
	plain, err := storable.JSON(p.args)
	if err != nil {
		return e, "", invalid("payload: %w", err)
	}
	hash, err = Unique{By: ByArgs()}.hash(s.q.cfg.Codec, p.kind.name, p.args, plain)
	return e, hash, err
}

// schedulable returns an error for settings that the tasks of a schedule cannot have.
func (o *EnqueueOptions) schedulable() error {
	switch {
	case !o.Policy.IsZero():
		return invalid("Policy is set: must not be set for a schedule, whose tasks have their kind's policy")
	case o.Unique.isSet():
		return invalid("Unique is set: must not be set for a schedule")
	case !o.ExpireAt.IsZero():
		return invalid("ExpireAt %v is set: must be zero for a schedule; use a policy with WithStartWithin", o.ExpireAt)
	case !o.RunAt.IsZero():
		return invalid("RunAt %v is set: must be zero, since the tick sets the time", o.RunAt)
	}
	return nil
}

// errNotStored is the error of middleware that returned nil without calling next.
var errNotStored = errors.New("falldue: middleware has neither stored the tasks of a schedule nor returned an error: it must call next or return an error")

// Middleware reports whether there is middleware around enqueues.
func (s internals) Middleware() bool { return s.q.aroundEnqueue.Load() != nil }

// Through stores entries of a schedule by way of the queue's middleware.
func (s internals) Through(ctx context.Context, entries []store.Entry, put func(context.Context, []store.Entry) ([]int64, error)) error {
	around := s.q.aroundEnqueue.Load()
	if around == nil || len(entries) == 0 {
		_, err := put(ctx, entries)
		return err
	}
	called := false
	params := make([]EnqueueParams, len(entries))
	for i, e := range entries {
		payload, err := decode(s.q.cfg.Codec, payloadOf(e.Kind), []byte(e.Payload))
		if err != nil {
			return err
		}
		params[i] = EnqueueParams{
			kind: &kind{name: e.Kind, KindConfig: KindConfig{Queue: e.Queue, Priority: e.Priority}}, args: json.RawMessage(payload),
			opts: &EnqueueOptions{Key: e.Key, MaxAttempts: e.MaxAttempts, Delay: store.Duration(e.Delay), Metadata: store.ReadMetadata([]byte(e.Metadata.V)), Timeout: store.ReadTimeout([]byte(e.Metadata.V))},
			own:  true,
			put: func(ctx context.Context, tasks []EnqueueParams) ([]Receipt, error) {
				called = true
				list, err := s.scheduled(tasks, entries)
				if err != nil {
					return nil, err
				}
				return receiptsOf(put(ctx, list))
			},
		}
	}
	_, err := (*around)(ctx, nil, params)
	if err == nil && !called {
		err = errNotStored
	}
	return err
}

// scheduled returns tasks of a schedule as they are stored. entries are the tasks that middleware
// has made.
func (s internals) scheduled(tasks []EnqueueParams, entries []store.Entry) ([]store.Entry, error) {
	list := make([]store.Entry, len(tasks))
	for i := range tasks {
		p := &tasks[i]
		err := p.options().schedulable()
		if err == nil {
			list[i], err = s.q.entry(p)
		}
		if err != nil {
			return nil, fmt.Errorf("enqueue %.100q: %w", p.Kind(), err)
		}
		if slices.ContainsFunc(entries, func(e store.Entry) bool { return e.Key == p.taskKey() }) {
			list[i].Key = p.taskKey() // which may be a hash
		}
	}
	return list, nil
}

// StoredNote returns the note that was passed to a call, as it is stored.
func (s internals) StoredNote(notes []Note) (Note, error) {
	n, err := oneOf(notes)
	if err != nil {
		return n, err
	}
	return n.stored()
}

// AddTicker adds t, which enqueues the periodic tasks that are due. The function t returns the time until the next
// task is due, or a negative duration if there is none. Package tasktest calls t.
func (s internals) AddTicker(t func(context.Context) (next time.Duration, err error)) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.tickers = append(s.q.tickers, t)
}

// Tickers returns the tickers that have been added.
func (s internals) Tickers() []func(context.Context) (next time.Duration, err error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return slices.Clone(s.q.tickers)
}

// For package many:

// Refuse makes Run return an error.
func (s internals) Refuse(err error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.handlerErrs = append(s.q.handlerErrs, err)
}

// For package ops:

// Release returns the release of the program.
func (s internals) Release() string { return s.q.release() }

// WorkerConfig returns the settings of a worker of the queue, with what it would announce.
func (s internals) WorkerConfig() worker.Config {
	handlers, _ := s.q.handlers()
	return s.q.workerConfig(handlers)
}

// TaskInfos returns rows, decoded by the queue's codec.
func (s internals) TaskInfos(rows []store.Task) []TaskInfo {
	list := make([]TaskInfo, len(rows))
	for i, t := range rows {
		list[i] = taskInfo(t, s.q.cfg.Codec)
	}
	return list
}

// StoredEntry returns a task as an enqueue stores it.
func (s internals) StoredEntry(p EnqueueParams) (store.Entry, error) { return s.q.entry(&p) }

// ExistsError returns an error of the store as the API has it.
func (internals) ExistsError(err error) error { return existsError(err) }

// Change stores a change of a subject, which ends at a time or, if that is zero, never, and makes
// the worker of this process read it.
func (s internals) Change(ctx context.Context, subject Subject, until time.Time, c store.Change) error {
	return s.q.change(ctx, subject, until, c)
}

// Acted notifies workers of an action, and unblocks or cancels tasks that depend on the changed
// ones.
func (s internals) Acted(ctx context.Context, a store.Action, acted store.Acted) {
	s.q.acted(ctx, a, acted)
}
