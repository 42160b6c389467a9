package falldue

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// stepper runs the tasks of a queue one at a time, in the goroutine of its caller, for
// package tasktest. It claims, runs and settles with the parts of a worker, and has none of
// its loops but those that a running task needs.
type stepper struct{ q *Queue }

func init() {
	hooks.QueueOf = func(q any) hooks.Queue { return stepper{q.(*Queue)} }
	hooks.SetCalls = func(task, calls any) { task.(interface{ setCalls(c taskCalls) }).setCalls(calls.(taskCalls)) }
	hooks.ProgressOf = progressOf
	hooks.VerdictOf = func(err error) hooks.Verdict {
		f := read(err)
		return hooks.Verdict{Asked: [...]string{actDiscard: "discard", actSnooze: "snooze", actRetryAfter: "retry after", actNone: ""}[f.act], Wait: f.wait}
	}
}

// Store returns the queue's store.
func (s stepper) Store() *store.Store { return s.q.store }

// Logger returns the queue's logger.
func (s stepper) Logger() *slog.Logger { return s.q.cfg.Logger }

// Enqueued wakes the workers for tasks that have been stored.
func (s stepper) Enqueued(entries []store.Entry) { s.q.announce(entries) }

// waitingLane is a lane with tasks that the queue would run.
type waitingLane struct {
	queue string
	store.Head
	rule *rule
	wait time.Duration // until the first task falls due
}

// worker returns a worker of the queue that has read what people ask of all workers.
func (s stepper) worker(ctx context.Context) (*worker, error) {
	handlers, err := s.q.handlers()
	if err != nil {
		return nil, err
	}
	w := newWorker(s.q.cfg, s.q.store, s.q.keeper, handlers, s.q.observer)
	w.flows.wake = func(context.Context, string) { s.q.Wake() } // w does not look for tasks itself
	if err := w.changes.read(ctx); err != nil {
		return nil, err
	}
	w.overrides.refresh(ctx)
	return w, nil
}

// RunOne runs the task that is due first, if there is one. Otherwise it returns how long it
// is until the next task falls due or a limit admits one, or a negative duration if nothing
// is known to. A task that is due and cannot be claimed, since somebody has locked its row
// for example, does not count.
func (s stepper) RunOne(ctx context.Context) (ran *hooks.Ran, next time.Duration, err error) {
	w, err := s.worker(ctx)
	if err != nil {
		return nil, 0, err
	}
	lanes, err := s.lanes(ctx, w)
	if err != nil {
		return nil, 0, err
	}
	next = -1
	for _, at := range lanes {
		wait := at.wait
		if wait <= 0 {
			if ran, wait, err = s.run(ctx, w, at); ran != nil || err != nil {
				return ran, 0, err
			}
		}
		if wait > 0 && (next < 0 || wait < next) {
			next = wait
		}
	}
	return nil, next, nil
}

// Handles returns the names of the queues and of the kinds with handlers, sorted.
func (s stepper) Handles() (queues, kinds []string) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return slices.Sorted(maps.Keys(s.q.cfg.Queues)), slices.Sorted(maps.Keys(s.q.kinds))
}

// CleanAndJudge deletes what the worker's cleaner deletes, and then looks at all tasks that run
// after others: one that was deleted may have been before them.
func (s stepper) CleanAndJudge(ctx context.Context) error {
	w, err := s.worker(ctx)
	if err != nil {
		return err
	}
	w.cleaner.cleanAll(ctx)
	return w.flows.lookAtAll(ctx)
}

// lanes lists the lanes with tasks that the worker would run and that are not paused, in
// the order in which claims empty them.
func (s stepper) lanes(ctx context.Context, w *worker) (list []waitingLane, err error) {
	var keys []string // of tasks' own policies
	for _, queue := range slices.Sorted(maps.Keys(w.pollers)) {
		p := w.pollers[queue]
		heads, err := p.sweeper.heads(ctx)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			handler := p.handlers[h.Kind]
			if h.Corrupt != nil || handler == nil || w.changes.paused(queue, h.Lane) {
				continue
			}
			list = append(list, waitingLane{queue: queue, Head: h, rule: handler.rule})
			if h.Policy != "" {
				keys = append(keys, h.Policy)
			}
		}
	}
	own := map[string]ownRule{}
	if len(keys) > 0 {
		own, err = newOwnRules(s.q.store.Policies, s.q.store.CheckDelays, s.q.keeper.stored, events{s.q.cfg.Logger}).load(ctx, keys)
		if err != nil {
			return nil, err
		}
	}
	for i := range list {
		at := &list[i]
		if at.Policy != "" {
			if err := own[at.Policy].err; err != nil {
				return nil, err
			}
			at.rule = own[at.Policy].rule
		}
		at.rule = w.overrides.current(at.queue, at.Lane, at.rule)
		at.wait = at.rule.delayIn(at.Lane) - store.Duration(at.Now-max(at.Anchor, 0))
	}
	slices.SortStableFunc(list, func(a, b waitingLane) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.wait, b.wait))
	})
	return list, nil
}

// run claims the first task of a lane, runs its handler, and settles it. If the claim finds
// none, it returns how long a limit holds the lane back, or 0.
func (s stepper) run(ctx context.Context, w *worker, at waitingLane) (_ *hooks.Ran, held time.Duration, _ error) {
	start, d := time.Now(), w.dispatchers[at.queue]
	claims, held, err := claimOne(ctx, w.pollers[at.queue], at)
	if err != nil || len(claims) == 0 {
		return nil, held, err
	}
	r := new(taskRun)
	d.begin(r, claims[0], at.rule, start)
	w.leases.hold(r)
	defer s.work(ctx, w)() // also when a handler ends the test
	d.handle(ctx, ctx, r)
	lost, err := settleOne(ctx, w, r)
	if err != nil {
		return nil, 0, err
	}
	if err := w.flows.judgeEnded(ctx); err != nil {
		w.flows.events.flowsFailed(err) // a worker does it at its next look
	}
	ran := &hooks.Ran{ID: r.claim.ID, Kind: at.Kind, Queue: at.queue, Attempt: r.claim.Attempts, State: r.end.State}
	if r.failure != nil {
		ran.Err = r.failure.err
	}
	if lost {
		switch r.lostOutcome() {
		case outcomeDone:
			ran.State = statements.StateDone
		case outcomeCancelled:
			ran.State, ran.Err = statements.StateCancelled, ErrCancelled
		default:
			ran.State, ran.Err = "", ErrLeaseLost
		}
	}
	return ran, 0, nil
}

// claimOne claims a task of a lane under its limits, and returns how long they hold it back.
func claimOne(ctx context.Context, p *poller, at waitingLane) (claims []*store.Claim, held time.Duration, err error) {
	source := p.source(at.Lane, at.rule, max(at.Anchor, earliestMoment))
	params := p.params(1, []store.Source{source})
	claims, _, err = p.send(ctx, statementTimeout, 1, func(ctx context.Context) ([]*store.Claim, error) {
		if len(source.Limits) == 0 {
			return p.claimRows(ctx, params)
		}
		result, err := p.claimUnderLimits(ctx, params)
		for _, rest := range result.Rests {
			held = rest.Wait
		}
		return result.Claims, err
	})
	return claims, held, err
}

// work starts the roles of a worker that a running task needs, until the returned function is
// called.
func (s stepper) work(ctx context.Context, w *worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	leave := s.q.obey(w.changes)
	var background sync.WaitGroup
	for _, one := range []role{w.leases, w.progress, w.overrides} {
		background.Go(func() { one.work(ctx) })
	}
	background.Go(func() {
		await(ctx, w.changes.hurry, changesEvery) // it has just read
		w.changes.work(ctx)
	})
	return func() {
		leave()
		cancel()
		background.Wait()
	}
}

// settleOne settles a run that the dispatcher has passed on, and reports whether its claim was
// lost.
func settleOne(ctx context.Context, w *worker, r *taskRun) (lost bool, err error) {
	if len(w.settler.in) == 0 {
		return true, nil // it was lost while it ran, and the dispatcher has said so
	}
	batch, mode := []*taskRun{r}, waitForLocks
	for try := 0; ; try++ {
		left, late, err := w.settler.try(ctx, batch, mode)
		switch {
		case err != nil && late && mode == waitForLocks:
			mode = skipLocked
			continue
		case err != nil:
			return false, err
		case len(left.Locked) == 0:
			if lost = len(left.Lost) > 0; lost {
				w.leases.gone(ctx, batch) // a test that moves the clock ends leases before their time
				w.leases.ended(ctx, r)
			}
			w.settler.finish(batch, store.SetOf(left.Lost), mode)
			w.settler.deaths.report()
			return lost, nil
		}
		if err := pause(ctx, errorPause(try)); err != nil {
			return false, err
		}
	}
}
