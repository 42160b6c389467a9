package falldue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// poller claims due tasks of one queue and passes them to the dispatcher. It claims
// from the lanes that its tracker knows to be due, sweeps for new lanes at every
// poll, and sleeps until the next task falls due. While large claims return as many
// tasks as they asked for, a second goroutine claims too: a single loop leaves the
// database idle while it reads an answer.
type poller struct {
	pollerConfig
	lanes    *laneTracker
	suspects *suspects
	sweeper  *sweeper
	slots    slotWaiter

	woken          chan struct{} // signalled when a task may have fallen due
	assistWanted   chan struct{} // signalled when more is due than one claim at a time can take
	sweepRequested atomic.Bool   // a task may wait that this worker does not know of
	lastClaim      atomic.Int64  // when a claim last returned a task, in nanoseconds since 1970
	nextRequest    time.Time     // before this time no request is followed; only loop uses it
}

// pollerConfig has the settings of a poller and the functions that it calls.
type pollerConfig struct {
	queue, workerID string
	leaseLength     time.Duration
	handlers        map[string]*handler // by kind
	gates           gates
	budget          *budget
	limiter         limiter
	slot            int64 // identifies the claim slots of its claims

	claimRows        func(context.Context, store.ClaimParams) ([]*store.Claim, error)
	candidates       func(ctx context.Context, queue string, from store.Source, after int64, limit int) ([]store.Candidate, error)
	claimUnderLimits func(context.Context, store.ClaimParams) (store.Limited, error)
	claimKeys        func(context.Context, store.ClaimParams, []store.Candidate) (store.Limited, error)
	classify         func(error) dialect.Class
	dispatch         func([]*store.Claim, []*rule, time.Time) // passes on claims, their rules and the time when they were sent
	behind           func() bool                              // reports whether claims should wait for the settlers
	claimsAtOnce     bool                                     // a claim is one statement, and more lanes cost it little
	policyVersion    func() int64                             // counts the changes of policies; nil if none comes
	parallelClaims   bool                                     // claims do not wait for each other's rows
	events           events
	observer         *observer
}

// requestPause is the least time between two requests to sweep that a poller
// follows. Other processes may commit a thousand times a second.
const requestPause = 5 * time.Millisecond

// maxSources is the greatest number of lanes of one claim.
const maxSources = 128

// maxLimitedSources is the greatest number of lanes of one claim under limits. Each key is
// a lane with few tasks that may run.
const maxLimitedSources = 256

func newPoller(cfg pollerConfig, sweeper *sweeper) *poller {
	sweeper.queue, sweeper.lanes, sweeper.gates, sweeper.events = cfg.queue, newLaneTracker(), cfg.gates, cfg.events
	p := &poller{
		pollerConfig: cfg, lanes: sweeper.lanes, sweeper: sweeper,
		suspects: &suspects{queue: cfg.queue, lanes: sweeper.lanes, candidates: cfg.candidates, classify: cfg.classify, events: cfg.events},
		woken:    make(chan struct{}, 1), assistWanted: make(chan struct{}, 1),
	}
	sweeper.wake, sweeper.version = func() { signal(p.woken) }, cfg.policyVersion
	p.lanes.delayOf = func(at store.Lane) (time.Duration, bool) {
		// Where another policy holds, its rule is made, and all lanes are timed again.
		if rule := cfg.gates.rule(at, func() {}); rule != nil {
			return rule.delayIn(at), true
		}
		return 0, false
	}
	return p
}

// hint records that a lane has a task that falls due after wait, and wakes the
// poller. It reports whether the worker handles such tasks.
func (p *poller) hint(at store.Lane, wait time.Duration) bool {
	if p.handlers[at.Kind] == nil {
		return false
	}
	p.lanes.hint(at, time.Now().Add(wait))
	signal(p.woken)
	return true
}

// claimedAt returns when a claim last returned a task, or a time long ago.
func (p *poller) claimedAt() time.Time {
	return time.Unix(0, p.lastClaim.Load())
}

// waits reports whether the poller has room for tasks and knows of none that is due.
func (p *poller) waits() bool {
	first, ok := p.lanes.next()
	return (!ok || first.After(time.Now())) && p.room() > 0
}

// sweepNow makes the poller look for tasks that it does not know of: at once, or
// soon if it has just done so.
func (p *poller) sweepNow() {
	p.sweepRequested.Store(true)
	signal(p.woken)
}

// loop claims until ctx ends.
func (p *poller) loop(ctx context.Context) {
	defer p.sweeper.running.Wait()
	failures := 0
	for ctx.Err() == nil {
		if p.room() == 0 {
			await(ctx, p.budget.freed, time.Hour)
			continue
		}
		next, err := p.round(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.events.pollFailed(p.queue, err)
				await(ctx, nil, errorPause(failures)+rand.N(50*time.Millisecond))
			}
			failures++
			continue
		}
		failures = 0
		if next > 0 {
			await(ctx, p.woken, next)
		}
	}
}

// assist claims beside loop while there is more to claim, until ctx ends.
func (p *poller) assist(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.assistWanted:
		}
		if ctx.Err() != nil {
			return
		}
		due, limited := p.limiter.split(p.lanes.due(time.Now(), maxSources))
		due, suspect := p.suspects.next(due)
		due, room := p.plan(due)
		if len(due) == 0 || room == 0 || suspect != nil || limited {
			continue // those with limits would take each other's permits
		}
		if _, err := p.claim(ctx, due, room, room >= slotThreshold); err != nil && !errors.Is(err, store.ErrNoSlot) {
			p.events.claimFailed(p.queue, err)
		}
	}
}

// room returns how many tasks to claim now. It is 0 while enough tasks are claimed,
// or while many wait to be settled.
func (p *poller) room() int {
	if p.behind() {
		return 0
	}
	return p.budget.room()
}

// plan returns from which of the lanes that are due to claim next, and how many tasks.
// It claims ahead from lanes that come before the first one that allows none, and only
// while no handler is free: otherwise tasks of the others would never get one.
func (p *poller) plan(due []store.Lane) ([]store.Lane, int) {
	if len(due) == 0 {
		return nil, p.room()
	}
	ahead, lanes := maxPrefetch, 0
	for _, at := range due {
		n := p.ahead(at)
		if n == 0 {
			break
		}
		ahead, lanes = min(ahead, n), lanes+1
	}
	if lanes < len(due) && (lanes == 0 || p.budget.free() > 0) {
		ahead, lanes = 0, len(due)
	}
	p.budget.prefetch(ahead)
	return due[:lanes], p.room()
}

// ahead returns how many tasks of a lane may be claimed ahead. It is 0 for last
// attempts, which would be used up if the worker died before they start.
func (p *poller) ahead(at store.Lane) int {
	rule := p.gates.rule(at, nil)
	if rule == nil {
		return maxPrefetch // a claim leaves the lane out
	}
	if p.limiter.limited(at) {
		return 0 // a task that waits for a handler would hold a permit
	}
	if most := rule.policy.MaxAttempts(); most > 0 && at.Attempts >= most-1 {
		return 0
	}
	return p.handlers[at.Kind].pace.ahead(p.budget.limit)
}

// round claims what is due, sweeps if a sweep is due, and returns how long to sleep.
func (p *poller) round(ctx context.Context) (time.Duration, error) {
	if err := p.sweeper.failure(); err != nil {
		return 0, err
	}
	if now := time.Now(); !now.Before(p.nextRequest) && p.sweepRequested.Swap(false) {
		p.nextRequest = now.Add(requestPause)
		p.sweeper.request()
		if p.claimsAtOnce { // else each lane is a statement of its own
			p.hintDefaultLanes()
		}
	}
	if p.sweeper.isLate() {
		p.hintDefaultLanes()
	}
	most := maxSources
	if p.limiter.any {
		most = maxLimitedSources
	}
	due, limited := p.limiter.split(p.lanes.due(time.Now(), most))
	if !limited {
		due = due[:min(len(due), maxSources)]
	}
	due, suspect := p.suspects.next(due)
	due, room := p.plan(due)
	if len(due) > 0 {
		if room == 0 {
			return 0, nil
		}
		if suspect != nil {
			p.sweeper.startIfDue(ctx)
			return 0, p.claimSuspect(ctx, suspect, due[0], room)
		}
		if limited {
			p.sweeper.startIfDue(ctx)
			return 0, p.claimLimited(ctx, due, room)
		}
		n, err := p.claim(ctx, due, room, p.slots.needed(max(room, p.budget.limit)))
		p.sweeper.startIfDue(ctx)
		if errors.Is(err, store.ErrNoSlot) {
			await(ctx, nil, p.slots.refused())
			return 0, nil
		}
		p.slots.claimed(n, room)
		return 0, err
	}
	p.slots.claimed(0, room)
	p.sweeper.startIfDue(ctx)
	until := p.sweeper.next()
	if first, ok := p.lanes.next(); ok && first.Before(until) {
		until = first
	}
	if p.sweepRequested.Load() && p.nextRequest.Before(until) {
		until = p.nextRequest
	}
	return max(time.Until(until), time.Microsecond), nil
}

// hintDefaultLanes marks the lanes of new tasks without options due. The tasks of which
// others notify are most often there, and start in half the time without a sweep first.
func (p *poller) hintDefaultLanes() {
	now := time.Now()
	for name, h := range p.handlers {
		if h.queue == p.queue {
			p.lanes.hint(store.Lane{State: statements.StateOpen, Priority: h.priority, Kind: name}, now)
		}
	}
}

// claim claims up to room tasks from lanes that seem due, passes them to the
// dispatcher, and returns how many there were.
func (p *poller) claim(ctx context.Context, due []store.Lane, room int, inSlot bool) (int, error) {
	since := p.lanes.beginClaim(due)
	sources, rules := make([]store.Source, 0, len(due)), make([]*rule, 0, len(due))
	for i, at := range due {
		if rule := p.gates.rule(at, func() { p.hint(at, 0) }); rule != nil {
			sources, rules = append(sources, p.source(at, rule, since[i])), append(rules, rule)
		}
	}
	if len(sources) == 0 {
		p.learn(due, nil, nil, room, time.Now())
		return 0, nil
	}
	params := p.params(room, sources)
	if inSlot {
		params.Slot = p.slot
	}
	start := time.Now()
	claims, _, err := p.send(ctx, statementTimeout, room, func(ctx context.Context) ([]*store.Claim, error) { return p.claimRows(ctx, params) })
	if err != nil {
		if !errors.Is(err, store.ErrNoSlot) {
			p.suspects.add(sources)
		}
		return 0, err
	}
	p.learn(due, rules, claims, room, start)
	p.dispatch(claims, rules, start)
	return len(claims), nil
}

func (p *poller) source(at store.Lane, r *rule, since int64) store.Source {
	return store.Source{Lane: at, Delay: r.delay, Since: since, Running: p.handlers[at.Kind].running(at.Attempts + 1), MaxAttempts: r.policy.MaxAttempts(), Limits: p.limiter.of(at)}
}

func (p *poller) params(room int, sources []store.Source) store.ClaimParams {
	return store.ClaimParams{Queue: p.queue, Worker: p.workerID, Lease: p.leaseLength, Limit: room, Sources: sources}
}

// send sends a claim of up to room tasks, which may take up to limit, and reports whether it timed out. It is not
// cancelled when ctx ends: if its answer were lost, the tasks it took would wait for the
// end of their leases.
func (p *poller) send(ctx context.Context, limit time.Duration, room int, claim func(context.Context) ([]*store.Claim, error)) (claims []*store.Claim, late bool, err error) {
	ctx, cancel := delayedContext(ctx, limit, claimDelay)
	defer cancel()
	p.budget.claiming(room)
	start := time.Now()
	claims, err = claim(ctx)
	p.budget.claimed(len(claims), room)
	if !errors.Is(err, store.ErrNoSlot) { // else others claim
		p.observer.claimed(p.queue, room, claims, start, err)
	}
	if len(claims) > 0 {
		p.lastClaim.Store(time.Now().UnixNano())
	}
	return claims, ctx.Err() != nil, err
}

// learn records what a claim that began at start found in the lanes. A lane whose
// tasks were not all taken is still due, from the last task taken on. The next task
// of a lane that was emptied is unknown until the next sweep, which comes soon unless
// the lane's first task cannot be claimed.
func (p *poller) learn(due []store.Lane, rules []*rule, claims []*store.Claim, room int, start time.Time) {
	if len(claims) < room {
		took := map[store.Lane]int64{}
		for _, c := range claims { // of one lane in the order of their anchors
			took[c.From] = c.Anchor
		}
		if p.lanes.emptied(due, took, start) || len(claims) > 0 {
			p.sweeper.makeDueSoon()
		}
		return
	}
	for i, c := range claims {
		if i+1 == len(claims) || claims[i+1].Place != c.Place { // the last of its lane
			p.lanes.advance(c.From, start.Add(rules[c.Place-1].delayIn(c.From)-store.Duration(c.Now-c.Anchor)), c.Anchor)
		}
	}
	if len(claims) >= slotThreshold && p.parallelClaims {
		signal(p.assistWanted)
	}
}
