package falldue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

// stepper runs the tasks of a queue one at a time, in the goroutine of its caller, for
// package tasktest. It claims, runs and settles as a worker does, and has no loops.
type stepper struct{ q *Queue }

func init() {
	hooks.QueueOf = func(q any) hooks.Queue { return stepper{q.(*Queue)} }
	hooks.SetCalls = func(task, calls any) { task.(interface{ setCalls(c taskCalls) }).setCalls(calls.(taskCalls)) }
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
	handler *handler
	rule    *rule
	wait    time.Duration // until the first task falls due
}

// RunOne runs the task that is due first, if there is one. Otherwise it returns how long it
// is until the next task falls due or a limit admits one, or a negative duration if nothing
// is known to. A task that is due and cannot be claimed, since somebody has locked its row
// for example, does not count.
func (s stepper) RunOne(ctx context.Context) (ran *hooks.Ran, next time.Duration, err error) {
	s.q.mu.Lock()
	handlers, err := maps.Clone(s.q.handlers), errors.Join(s.q.handlerErrs...)
	s.q.mu.Unlock()
	if err != nil {
		return nil, 0, err
	}
	changes, overrides, err := s.q.changesNow(ctx, handlers)
	if err != nil {
		return nil, 0, err
	}
	lanes, err := s.lanes(ctx, handlers, changes, overrides)
	if err != nil {
		return nil, 0, err
	}
	next = -1
	for _, at := range lanes {
		wait := at.wait
		if wait <= 0 {
			if ran, wait, err = s.run(ctx, at, overrides); ran != nil || err != nil {
				return ran, 0, err
			}
		}
		if wait > 0 && (next < 0 || wait < next) {
			next = wait
		}
	}
	return nil, next, nil
}

// lanes lists the lanes with tasks that the queue would run and that are not paused, in
// the order in which claims empty them.
func (s stepper) lanes(ctx context.Context, handlers map[string]*handler, changes *changeReader, overrides *overrides) (list []waitingLane, err error) {
	var keys []string // of tasks' own policies
	for _, queue := range slices.Sorted(maps.Keys(s.q.cfg.Queues)) {
		heads, err := s.q.store.NewLaneFinder(queue).Find(ctx)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			handler := handlers[h.Kind]
			if h.Corrupt != nil || handler == nil || changes.paused(queue, h.Lane) {
				continue
			}
			list = append(list, waitingLane{queue: queue, Head: h, handler: handler, rule: handler.rule})
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
		at.rule = overrides.current(at.queue, at.Lane, at.rule)
		at.wait = at.rule.delayIn(at.Lane) - store.Duration(at.Now-max(at.Anchor, 0))
	}
	slices.SortStableFunc(list, func(a, b waitingLane) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.wait, b.wait))
	})
	return list, nil
}

// run claims the first task of a lane, runs its handler, and settles it. If the claim finds
// none, it returns how long a limit holds the lane back, or 0.
func (s stepper) run(ctx context.Context, at waitingLane, overrides *overrides) (_ *hooks.Ran, held time.Duration, _ error) {
	cfg, worker, start := s.q.cfg, s.q.cfg.workerID(), time.Now()
	limits := newLimiter(at.queue, cfg.Queues[at.queue].Limits, map[string]*handler{at.Kind: at.handler}).of(at.Lane)
	claims, held, err := s.claim(ctx, store.ClaimParams{Queue: at.queue, Worker: worker, Lease: cfg.Lease, Limit: 1, Sources: []store.Source{{
		Lane: at.Lane, Delay: at.rule.delay, Since: max(at.Anchor, earliestMoment), Limits: limits,
		Running: at.handler.kind.running(at.Attempts + 1), MaxAttempts: at.rule.policy.MaxAttempts(),
	}}})
	if err != nil || len(claims) == 0 {
		return nil, held, err
	}
	progress := newProgressWriter(worker, s.q.store.WriteProgress, events{cfg.Logger})
	r := &taskRun{
		runEnv:    &runEnv{queue: at.queue, maxPayload: cfg.MaxPayload, codec: cfg.Codec, doneRetention: cfg.DoneRetention, ruleNow: overrides.current, begins: s.q.observer.started, reported: progress.reported, settleTx: s.q.store.SettleTx},
		execution: execution{claim: claims[0], rule: at.rule, workerID: worker, claimed: start}, handler: at.handler,
	}
	r.lease.until = start.Add(cfg.Lease)
	settled, ours := s.execute(ctx, r, progress)
	ran := &hooks.Ran{ID: r.claim.ID, Kind: at.Kind, Queue: at.queue, Attempt: r.claim.Attempts, State: settled.State}
	if r.failure != nil {
		ran.Err = r.failure.err
	}
	outcome := r.lease.lostBy()
	if ours {
		r.end = settled
		if ours, err = s.settle(ctx, worker, &settled); ours {
			outcome = outcomeOf(&settled, r.failure)
		}
	}
	if err == nil {
		s.q.observer.ended(r, outcome, 0)
		if ours && r.end.Member {
			s.q.judgeMembers(ctx, []int64{r.claim.ID})
		}
	}
	if !ours && err == nil {
		ran.State, ran.Err = "", ErrLeaseLost
	}
	return ran, 0, err
}

// claim claims from a lane under its limits, and returns how long they hold it back.
func (s stepper) claim(ctx context.Context, p store.ClaimParams) (claims []*store.Claim, held time.Duration, err error) {
	if len(p.Sources[0].Limits) == 0 {
		claims, err = s.q.store.Claim(ctx, p)
		return claims, 0, err
	}
	result, err := s.q.store.ClaimLimited(ctx, p)
	for _, rest := range result.Rests {
		held = rest.Wait
	}
	return result.Claims, held, err
}

// execute runs the handler, and meanwhile extends its lease and writes its progress.
func (s stepper) execute(ctx context.Context, r *taskRun, progress *progressWriter) (store.Settlement, bool) {
	l := newLeases(r.workerID, s.q.cfg.Lease, s.q.store, events{s.q.cfg.Logger})
	l.hold(r)
	extending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { l.work(extending) })
	background.Go(func() { progress.work(extending) })
	defer background.Wait() // also when a handler ends the test
	defer stop()
	return r.execute(ctx)
}

// settle records how the claim ended, and reports whether it was still the worker's.
func (s stepper) settle(ctx context.Context, worker string, e *store.Settlement) (bool, error) {
	for try := 0; ; try++ {
		left, err := s.q.store.Settle(ctx, worker, []*store.Settlement{e})
		if err != nil || len(left.Locked) == 0 {
			return len(left.Lost) == 0 || e.MaybeSettled, err
		}
		if err := pause(ctx, errorPause(try)); err != nil {
			return false, err
		}
	}
}
