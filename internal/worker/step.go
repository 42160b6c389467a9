package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
)

// Ran is a task that a stepper has run.
type Ran struct {
	ID          int64
	Kind, Queue string
	Attempt     int
	State       string // of the task after the run
	Err         error  // of the handler
}

// NewStepper returns a worker that takes single steps: it runs tasks one at a time in the goroutine of its
// caller, for package tasktest. Handlers have the context ctx.
func NewStepper(ctx context.Context, cfg Config, s *store.Store, policies *upkeep.PolicyStore, o observer) *Worker {
	return makeWorker(ctx, run.WithGathering(ctx, run.Gathering{None: true}), func() {}, func(error) {}, cfg, s, policies, o)
}

// waitingLane is a lane with tasks that the queue would run.
type waitingLane struct {
	queue string
	store.Head
	policy *control.CompiledPolicy
	wait   time.Duration // until the first task falls due
}

// RunOne runs the task that is due first, if any. Otherwise it returns how long it is until the next task falls due, a
// limit admits one, or a pause or an override ends, or a negative duration if none of these will happen. A due task that
// cannot be claimed, because another transaction has locked its row for example, does not count.
func (w *Worker) RunOne(ctx context.Context) (_ *Ran, next time.Duration, err error) {
	lanes, err := w.waitingLanes(ctx)
	if err != nil {
		return nil, 0, err
	}
	next = w.changes.NextEffect()
	for _, at := range lanes {
		wait := at.wait
		if wait <= 0 {
			var done *Ran
			if done, wait, err = w.runFirst(ctx, at); done != nil || err != nil {
				return done, 0, err
			}
		}
		if wait > 0 && (next < 0 || wait < next) {
			next = wait
		}
	}
	return nil, next, nil
}

// CleanAndJudge deletes tasks as the worker's cleaner does, and then checks all tasks with dependencies: a
// deleted task may have been a dependency.
func (w *Worker) CleanAndJudge(ctx context.Context) error {
	if err := w.queues.List(ctx); err != nil {
		return err
	}
	w.cleaner.CleanAll(ctx)
	return w.flows.CheckAll(ctx)
}

// waitingLanes lists the lanes with tasks that the worker would run and that are not paused, in
// the order in which claims empty them.
func (w *Worker) waitingLanes(ctx context.Context) (list []waitingLane, err error) {
	var keys []string // of per-task policies
	if err := w.queues.List(ctx); err != nil {
		return nil, err
	}
	for _, queue := range w.pollers.Queues() {
		p := w.pollers.Of(queue)
		heads, err := p.LanesNow(ctx)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			handler := p.Handlers[h.Kind]
			if h.Corrupt != nil || handler == nil || w.changes.Paused(queue, h.Lane) {
				continue
			}
			list = append(list, waitingLane{queue: queue, Head: h, policy: handler.Policy})
			if h.Policy != "" {
				keys = append(keys, h.Policy)
			}
		}
	}
	known := map[string]control.CachedPolicy{}
	if len(keys) > 0 {
		known, err = w.perTask.Load(ctx, keys)
		if err != nil {
			return nil, err
		}
	}
	for i := range list {
		at := &list[i]
		if at.Policy != "" {
			if err := known[at.Policy].Err; err != nil {
				return nil, err
			}
			at.policy = known[at.Policy].Policy
		}
		at.policy = w.overrides.Current(at.queue, at.Lane, at.policy)
		at.wait = at.policy.DelayIn(at.Lane) - store.Duration(at.Now-max(at.Anchor, 0))
	}
	slices.SortStableFunc(list, func(a, b waitingLane) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.wait, b.wait))
	})
	return list, nil
}

// runFirst claims the first task of a lane, runs its handler, and settles the task. If the claim finds no
// task, it returns how long a limit holds the lane back, or 0.
func (w *Worker) runFirst(ctx context.Context, at waitingLane) (_ *Ran, held time.Duration, _ error) {
	start, d := time.Now(), w.queues.dispatcher(at.queue)
	claims, held, err := w.pollers.Of(at.queue).ClaimOne(ctx, at.Head, at.policy)
	if err != nil || len(claims) == 0 {
		return nil, held, err
	}
	r := new(run.Run)
	d.Begin(r, claims[0], at.policy, start)
	w.claimed.Add(&r.Lease)
	defer w.assistRun(ctx)() // even when a handler ends the test
	r = d.HandleOne(r)
	lost, err := w.settler.SettleOne(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	w.flows.JudgeNow(ctx)
	result := &Ran{ID: claims[0].ID, Kind: at.Kind, Queue: at.queue, Attempt: claims[0].Attempts, State: r.StateAfter(), Err: r.HandlerError()}
	if lost {
		switch r.LostOutcome() {
		case outcome.Done:
			result.State = statements.StateDone
		case outcome.Cancelled:
			result.State, result.Err = statements.StateCancelled, outcome.ErrCancelled
		default:
			result.State, result.Err = "", outcome.ErrLeaseLost
		}
	}
	return result, 0, nil
}

// assistRun starts the loops of a worker that a running task needs, until the returned function
// is called.
func (w *Worker) assistRun(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	for _, one := range []role{w.leases, w.progress, w.overrides} {
		background.Go(func() { one.Work(ctx) })
	}
	background.Go(func() {
		w.changes.WorkAfterRead(ctx)
	})
	return func() {
		cancel()
		background.Wait()
	}
}
