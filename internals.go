package falldue

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
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
