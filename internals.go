package falldue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
	"github.com/falldue/falldue/internal/worker"
)

// internals lets packages tasktest, periodic, flow and ops into a queue.
type internals struct{ q *Queue }

func init() {
	hooks.QueueOf = func(q any) hooks.Queue { return internals{q.(*Queue)} }
	hooks.SetCalls = func(task, calls any) { task.(interface{ setCalls(c taskCalls) }).setCalls(calls.(taskCalls)) }
	hooks.ProgressOf = run.NewProgress
	hooks.Asked = func(err error) (string, time.Duration) {
		f := read(err)
		outcomes := [...]run.Outcome{run.ActNone: run.OutcomeRetried, run.ActDiscard: run.OutcomeDiscarded, run.ActSnooze: run.OutcomeSnoozed, run.ActRetryAfter: run.OutcomeRetriedAfter}
		return string(outcomes[f.Act]), f.Wait
	}
}

// Store returns the queue's store.
func (s internals) Store() *store.Store { return s.q.store }

// Logger returns the queue's logger.
func (s internals) Logger() *slog.Logger { return s.q.cfg.Logger }

// Enqueued wakes the workers for tasks that have been stored.
func (s internals) Enqueued(entries []store.Entry) { s.q.announce(entries) }

// RunOne runs the task that is due first; see hooks.Queue.
func (s internals) RunOne(ctx context.Context) (_ *hooks.Ran, next time.Duration, err error) {
	var done *worker.Ran
	err = s.step(ctx, func(w *worker.Worker) error {
		done, next, err = w.RunOne(ctx)
		return err
	})
	return (*hooks.Ran)(done), next, err
}

// CleanAndJudge does what a worker's background loops do to finished tasks and to tasks with
// dependencies; see hooks.Queue.
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
	w := worker.NewStepper(ctx, cfg, s.q.store, s.q.keeper, s.q.observer)
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

// What package flow needs of a queue, beside its store.

// EnqueueFlow stores tasks of which some run after others. tx is a Tx or nil.
func (s internals) EnqueueFlow(ctx context.Context, tx any, params []any, flow store.Flow) ([]int64, error) {
	var within Tx
	if tx != nil {
		within = tx.(Tx)
		if err := checkTx(within); err != nil {
			return nil, err
		}
	}
	put := func(ctx context.Context, tasks []EnqueueParams) ([]Receipt, error) {
		return s.putFlow(ctx, within, tasks, len(params), flow)
	}
	tasks := make([]EnqueueParams, len(params))
	for i, p := range params {
		tasks[i] = p.(EnqueueParams)
		tasks[i].put, tasks[i].place = put, i
	}
	if len(tasks) == 0 {
		return nil, nil
	}
	fn := EnqueueFunc(func(ctx context.Context, _ Tx, tasks []EnqueueParams) ([]Receipt, error) { return put(ctx, tasks) })
	if around := s.q.aroundEnqueue.Load(); around != nil {
		fn = *around
	}
	receipts, err := throughMiddleware(ctx, within, fn, len(tasks), func(i int) EnqueueParams { return tasks[i] })
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
		return nil, invalid("%d tasks that middleware made of %d of a flow; allowed is one for each", len(tasks), n)
	}
	for i, t := range tasks {
		if t.put != nil && t.place != i {
			return nil, invalid("task %d of a flow, %s, which middleware made task %d; allowed is their order", t.place, t.Kind(), i)
		}
	}
	members := map[int]bool{}
	for _, e := range flow.Edges {
		members[e.Member] = true
	}
	p, err := s.q.pending(n, func(i int) EnqueueParams {
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
		if tasks[i].opts.Unique.isSet() {
			return nil, invalid("task %d, %s, has Unique; allowed is none in a flow, since what exists runs after nothing", i, tasks[i].Kind())
		}
	}
	p.flow = &flow
	return s.q.insert(ctx, tx, p)
}

// judgeMembers opens what may run after members that have ended. What it fails to do is done by
// a worker, at its next look at all of them.
func (q *Queue) judgeMembers(ctx context.Context, members []int64) {
	upkeep.NewFlowKeeper(q.store, func(context.Context, string) { q.Wake() }, q.cfg.Logger).JudgeFor(ctx, members)
}

// What package periodic needs of a queue, beside its store.

func init() { hooks.Origin = origin }

// Entry returns the task that params describe as schedules store it, and a hash of its kind
// and arguments. Settings that the tasks of a schedule cannot have give an error.
func (s internals) Entry(params any) (e store.Entry, hash string, err error) {
	p, ok := params.(EnqueueParams)
	if !ok || p.kind == nil {
		return e, "", invalid("empty EnqueueParams, or a task of an empty Kind; make them with NewKind and Kind.Params")
	}
	if p.opts.Delay != 0 {
		return e, "", invalid("Delay %v is set; allowed is none, the tick says when", p.opts.Delay)
	}
	if err := p.opts.schedulable(); err != nil {
		return e, "", err
	}
	if e, err = s.q.entry(p); err != nil {
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
		return invalid("Policy is set; allowed is none, that of the kind")
	case o.Unique.isSet():
		return invalid("Unique is set; allowed is none")
	case !o.RunAt.IsZero():
		return invalid("RunAt %v is set; allowed is none, the tick says when", o.RunAt)
	}
	return nil
}

// errNotStored is the error of middleware that returned nil without calling next.
var errNotStored = errors.New("falldue: middleware has not stored the tasks of a schedule, and returned no error")

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
			opts: EnqueueOptions{Key: e.Key, MaxAttempts: e.MaxAttempts, Delay: store.Duration(e.Delay), Metadata: store.ReadMetadata([]byte(e.Metadata.V))},
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

// scheduled returns tasks of a schedule as they are stored. entries are those of which
// middleware has made them.
func (s internals) scheduled(tasks []EnqueueParams, entries []store.Entry) ([]store.Entry, error) {
	list := make([]store.Entry, len(tasks))
	for i, p := range tasks {
		err := p.opts.schedulable()
		if err == nil {
			list[i], err = s.q.entry(p)
		}
		if err != nil {
			return nil, fmt.Errorf("enqueue %.100q: %w", p.Kind(), err)
		}
		if slices.ContainsFunc(entries, func(e store.Entry) bool { return e.Key == p.opts.Key }) {
			list[i].Key = p.opts.Key // which may be a hash
		}
	}
	return list, nil
}

// Said returns who pauses a schedule, and why, as they are stored.
func (s internals) Said(who, why string) (string, string, error) { return said(who, why) }

// AddTicker adds a ticker.
func (s internals) AddTicker(t hooks.Ticker) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.tickers = append(s.q.tickers, t)
}

// Tickers returns the tickers that have been added.
func (s internals) Tickers() []hooks.Ticker {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return slices.Clone(s.q.tickers)
}

// origin says which process this is: its host, and the release of the program.
func origin() string {
	text, _ := os.Hostname()
	if build, ok := debug.ReadBuildInfo(); ok {
		if release := releaseOf(build); release != "" {
			text += " " + release
		}
	}
	return text
}

// What package ops needs of a queue, besides its store.

// Info returns what a worker of the queue would say of itself.
func (s internals) Info() store.WorkerInfo {
	handlers, _ := s.q.handlers()
	return s.q.workerConfig(handlers).Info
}

// TaskInfos returns rows as a []TaskInfo.
func (s internals) TaskInfos(rows []store.Task) any {
	list := make([]TaskInfo, len(rows))
	for i, t := range rows {
		list[i] = taskInfo(t, s.q.cfg.Codec)
	}
	return list
}

// Change stores a change of a Subject.
func (s internals) Change(ctx context.Context, subject any, until time.Time, c store.Change) error {
	return s.q.change(ctx, subject.(Subject), until, c)
}

// Acted tells workers of an action.
func (s internals) Acted(ctx context.Context, a store.Action, acted store.Acted) {
	s.q.acted(ctx, a, acted)
}
