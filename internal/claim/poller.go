// Package claim finds due tasks and claims them.
package claim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Poller claims due tasks of one queue and passes them to the dispatcher. It claims
// from the lanes that its tracker knows to be due, and sleeps until the next task falls
// due. The sweeper searches for new lanes. While large claims return as many
// tasks as they requested, a second goroutine claims, too: a single loop leaves the
// database idle while it reads an answer.
type Poller struct {
	PollerConfig
	lanes    *lanes.Tracker
	suspects *suspects
	search   *search
	slots    slotWaiter
	outage   *outage
	expiry   *expiry

	woken          chan struct{} // signalled when a task may have fallen due
	assistWanted   chan struct{} // signalled when more is due than one claim at a time can take
	full           atomic.Bool   // the poller waits for room for more tasks
	refused        atomic.Bool   // the poller waits for a claim slot
	prefetch       atomic.Int64  // tasks to claim ahead, in addition to one for each free handler
	sweepRequested atomic.Bool   // a task may wait that this worker does not know of
	took           run.Mean      // how long claims that returned tasks took
	lastClaim      atomic.Int64  // when a claim last returned a task, in nanoseconds since 1970
	nextRequest    time.Time     // when the next request to sweep may be followed; only Loop uses it
}

// PollerConfig has the settings of a poller, and the parts of the worker that it uses.
type PollerConfig struct {
	Queue, WorkerID string
	LeaseLength     time.Duration
	PollInterval    time.Duration
	LowShare        int                     // percentage of tasks for later priorities
	Handlers        map[string]*run.Handler // by kind
	Policies        *control.Policies
	Budget          *run.Budget
	Limiter         Limiter
	Slot            int64 // identifies the claim slots of the poller's claims

	Table      table
	Sweeper    *Sweeper
	Dispatcher dispatcher
	Settler    settler
	Log        *slog.Logger
	Observer   Observer
	Expired    expiredTasks
	All        *Pollers // of the worker

	OneStatement   bool // a claim is one statement, and more lanes cost it little
	ParallelClaims bool // claims do not wait for each other's rows
	AscendingIDs   bool // tasks of other processes are found by their ids
}

// table has the statements of a poller.
type table interface {
	Claim(context.Context, store.ClaimParams) ([]*store.Claim, error)
	ClaimLimited(context.Context, store.ClaimParams) (store.Limited, error)
	ClaimKeys(context.Context, store.ClaimParams, []store.Candidate) (store.Limited, error)
	Candidates(ctx context.Context, queue string, from store.Source, after int64, limit int) ([]store.Candidate, error)
	Expire(ctx context.Context, queue string, at store.Lane, within time.Duration, why string) (store.Expired, error)
	ExpireDated(ctx context.Context, queue string, at store.Lane, why string) (store.Expired, error)
	SlotHolders(ctx context.Context, slot int64) (string, error)
	Classify(error) dialect.Class
}

// dispatcher runs claimed tasks.
type dispatcher interface {
	// Take takes claims that were sent at start, and the policies of their lanes.
	Take(claims []*store.Claim, policies []*control.CompiledPolicy, start time.Time)
}

// settler settles tasks that have run.
type settler interface {
	// Behind reports whether claims should wait, because many tasks wait to be settled.
	Behind() bool
}

func (c PollerConfig) events() events { return events{c.Log} }

// requestPause is the least time between two sweeps on request. Other processes may
// commit a thousand times a second.
const requestPause = 5 * time.Millisecond

// maxSources is the greatest number of lanes of one claim.
const maxSources = 128

// maxLimitedSources is the greatest number of lanes of one claim under limits. Each key is
// a lane with few tasks that may run.
const maxLimitedSources = 256

// NewPoller returns a poller of a queue.
func NewPoller(cfg PollerConfig) *Poller {
	woken := make(chan struct{}, 1)
	lanes := lanes.NewTracker(laneRules{cfg.Policies, cfg.Limiter}, cfg.LowShare)
	expiry := newExpiry(cfg, func(limits []string) {
		lanes.Freed(limits)
		retry.Signal(woken)
	})
	p := &Poller{
		PollerConfig: cfg, lanes: lanes, outage: &outage{all: cfg.All, events: cfg.events(), woken: make(chan struct{}, 1)}, expiry: expiry,
		suspects: &suspects{queue: cfg.Queue, lanes: lanes, table: cfg.Table, events: cfg.events()},
		woken:    woken, assistWanted: make(chan struct{}, 1),
	}
	// A poller that waits for a slot cannot claim what a search would find. It searches when it has claimed again.
	p.search = newSearch(cfg, lanes, expiry, func() bool { return !p.full.Load() && !p.refused.Load() }, woken)
	return p
}

// ExpireLate cancels tasks that have not started in time, until ctx ends.
func (p *Poller) ExpireLate(ctx context.Context) { p.expiry.work(ctx) }

// Hint records that a lane has a task, which falls due after wait, and wakes the poller. It reports
// whether the worker handles such tasks.
func (p *Poller) Hint(at store.Lane, wait time.Duration) bool {
	if p.Handlers[at.Kind] == nil {
		return false
	}
	p.lanes.Hint(at, time.Now().Add(wait))
	retry.Signal(p.woken)
	retry.Signal(p.outage.woken)
	return true
}

// laneRules are the delays and limits of a queue's lanes.
type laneRules struct {
	*control.Policies
	Limiter
}

// DelayOf returns the delay of a lane, and false if it is not known.
func (p *Poller) DelayOf(at store.Lane) (time.Duration, bool) { return p.Policies.DelayOf(at) }

// waits reports whether the poller has room for tasks and knows of none that is due.
func (p *Poller) waits() bool {
	first, ok := p.lanes.Next()
	return (!ok || first.After(time.Now())) && p.Room() > 0
}

// SweepNow makes the poller search for tasks that it does not know: immediately, or soon if the last
// search has just ended.
func (p *Poller) SweepNow() {
	p.sweepRequested.Store(true)
	retry.Signal(p.woken)
}

// Loop claims until ctx ends.
func (p *Poller) Loop(ctx context.Context) {
	for ctx.Err() == nil {
		if p.Room() == 0 {
			p.full.Store(true)
			p.Budget.Await(ctx)
			p.full.Store(false)
			continue
		}
		next, err := p.claimDue(ctx)
		p.Budget.PassOn()
		switch {
		case err == nil && next > 0:
			retry.Await(ctx, p.woken, next)
		case err == nil:
		case retry.KindOf(p.Table.Classify(err), false) == retry.Refused: // because of one lane; claims from the others continue
			p.failed(ctx, err, retry.ErrorPause(0))
		default:
			p.failed(ctx, err, p.outage.pause())
		}
	}
}

// failed reports a failure. It waits for a time, or until the database has answered another part of the
// worker.
func (p *Poller) failed(ctx context.Context, err error, wait time.Duration) {
	if ctx.Err() == nil {
		p.events().pollFailed(p.Queue, err)
		p.outage.await(ctx, retry.KindOf(p.Table.Classify(err), false), wait)
	}
}

// Assist claims alongside Loop while there is more to claim, until ctx ends.
func (p *Poller) Assist(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.assistWanted:
		}
		if ctx.Err() != nil {
			return
		}
		due, limited := p.due()
		due, suspect := p.suspects.next(due)
		due, room := p.plan(due)
		if len(due) == 0 || room == 0 || suspect != nil {
			continue
		}
		if limited {
			if _, err := p.claimLimited(ctx, due, room); err != nil {
				p.events().claimFailed(p.Queue, err)
			}
			retry.Signal(p.woken) // Loop may wait for the limits of this claim
			continue
		}
		if _, err := p.claim(ctx, due, room, room >= slotThreshold); err != nil && !errors.Is(err, store.ErrNoSlot) {
			p.events().claimFailed(p.Queue, err)
		}
	}
}

// due lists the lanes that the next claim may have, and reports whether they have limits.
func (p *Poller) due() (due []store.Lane, limited bool) {
	most := maxSources
	if p.Limiter.Any {
		most = maxLimitedSources
	}
	due = p.lanes.Due(time.Now(), most)
	if limited = len(due) > 0 && p.Limiter.Limited(due[0]); !limited {
		due = due[:min(len(due), maxSources)]
	}
	return due, limited
}

// Room returns how many tasks to claim now. It is 0 while enough tasks are claimed,
// or while many wait to be settled.
func (p *Poller) Room() int {
	if p.Settler.Behind() {
		return 0
	}
	return p.Budget.Room(int(p.prefetch.Load()))
}

// plan returns the due lanes to claim from next, and how many tasks to claim. It claims ahead from the
// lanes before the first lane that forbids that. While a handler is free, it claims from all due lanes
// and not ahead: otherwise the later lanes would never get a handler.
func (p *Poller) plan(due []store.Lane) ([]store.Lane, int) {
	if len(due) == 0 {
		return nil, p.Room()
	}
	ahead, lanes := run.MaxPrefetch, 0
	for _, at := range due {
		n := p.ahead(at)
		if n == 0 {
			break
		}
		ahead, lanes = min(ahead, n), lanes+1
	}
	if lanes < len(due) && (lanes == 0 || p.Budget.Free() > 0) {
		ahead, lanes = 0, len(due)
	}
	p.prefetch.Store(int64(ahead))
	return due[:lanes], p.Room()
}

// ahead returns how many tasks of a lane may be claimed ahead. It is 0 for last
// attempts, which would be used up if the worker died before they start.
func (p *Poller) ahead(at store.Lane) int {
	policy := p.Policies.Of(at, nil)
	if policy == nil {
		return run.MaxPrefetch // a claim leaves the lane out
	}
	if p.Limiter.Limited(at) {
		return 0 // a task that waits for a handler would take a permit
	}
	if most := policy.Policy.MaxAttempts(); most > 0 && at.Attempts >= most-1 {
		return 0
	}
	return p.Handlers[at.Kind].Pace.Ahead(p.Budget.Limit, p.took.Of())
}

// claimDue claims due tasks, and returns how long to sleep.
func (p *Poller) claimDue(ctx context.Context) (time.Duration, error) {
	if now := time.Now(); !now.Before(p.nextRequest) && p.sweepRequested.Swap(false) {
		p.nextRequest = now.Add(requestPause)
		p.search.request()
		if p.OneStatement { // else each lane is a statement of its own
			p.hintDefaultLanes()
		}
	}
	if p.search.isLate() {
		p.hintDefaultLanes()
	}
	due, limited := p.due()
	due, suspect := p.suspects.next(due)
	due, room := p.plan(due)
	if len(due) > 0 {
		if room == 0 {
			return 0, nil
		}
		if suspect != nil {
			p.search.wakeIfDue()
			return 0, p.claimSuspect(ctx, suspect, due[0], room)
		}
		if limited {
			p.search.wakeIfDue()
			lanes, err := p.claimLimited(ctx, due, room)
			if lanes == 0 { // Assist claims under all of their limits
				return minPause, err
			}
			return 0, err
		}
		n, err := p.claim(ctx, due, room, p.needsSlot(ctx, max(room, p.Budget.Limit)))
		if errors.Is(err, store.ErrNoSlot) {
			p.refused.Store(true)
			retry.Await(ctx, nil, p.slots.refused())
			p.refused.Store(false)
			return 0, nil
		}
		p.search.wakeIfDue()
		p.slots.Claimed(n, room)
		return 0, err
	}
	p.slots.Claimed(0, room)
	p.search.wakeIfDue()
	until := time.Now().Add(time.Hour)
	if late, ok := p.search.lateAt(); ok && late.Before(until) {
		until = late
	}
	if first, ok := p.lanes.Next(); ok && first.Before(until) {
		until = first
	}
	if p.sweepRequested.Load() && p.nextRequest.Before(until) {
		until = p.nextRequest
	}
	return max(time.Until(until), time.Microsecond), nil
}

// hintDefaultLanes marks the lanes of new tasks without options due. Most tasks of other processes are
// in these lanes, and start in half the time without a sweep first.
func (p *Poller) hintDefaultLanes() {
	now := time.Now()
	for name, h := range p.Handlers {
		if h.Queue == p.Queue {
			p.lanes.Hint(store.Lane{State: statements.StateOpen, Priority: h.Priority, Kind: name}, now)
		}
	}
}

// claim claims up to room tasks from lanes that seem due, passes them to the
// dispatcher, and returns how many there were.
func (p *Poller) claim(ctx context.Context, due []store.Lane, room int, inSlot bool) (int, error) {
	sources, policies := make([]store.Source, 0, len(due)), make([]*control.CompiledPolicy, 0, len(due))
	for _, from := range p.lanes.BeginClaim(due) {
		if policy := p.Policies.Of(from.Lane, func() { p.Hint(from.Lane, 0) }); policy != nil {
			sources, policies = append(sources, p.source(from, policy)), append(policies, policy)
		}
	}
	if len(sources) == 0 {
		p.learn(due, nil, nil, nil, room, time.Now())
		return 0, nil
	}
	store.Share(sources, room)
	params := p.params(room, sources)
	if inSlot {
		params.Slot = p.Slot
	}
	start := time.Now()
	claims, _, err := p.send(ctx, retry.StatementTimeout, room, func(ctx context.Context) ([]*store.Claim, error) { return p.Table.Claim(ctx, params) })
	if err != nil {
		if !errors.Is(err, store.ErrNoSlot) {
			p.suspects.add(sources)
		}
		return 0, err
	}
	p.learn(due, sources, policies, claims, room, start)
	p.Dispatcher.Take(claims, policies, start)
	return len(claims), nil
}

// needsSlot reports whether the next claim of up to limit tasks needs a claim slot.
func (p *Poller) needsSlot(ctx context.Context, limit int) bool {
	if !p.slots.needed(limit) || !p.slots.impatient() {
		return p.slots.needed(limit)
	}
	ctx, cancel := context.WithTimeout(ctx, retry.StatementTimeout)
	defer cancel()
	holders, err := p.Table.SlotHolders(ctx, p.Slot)
	return err == nil && p.slots.changeHands(holders)
}

// source adds the policy of a lane to the source of a claim.
func (p *Poller) source(from store.Source, r *control.CompiledPolicy) store.Source {
	from.Delay, from.MaxAttempts, from.Since = r.Delay, r.Policy.MaxAttempts(), p.expiry.since(from.Lane, r, from.Since)
	from.Running = p.Handlers[from.Kind].Running(from.Attempts + 1)
	return from
}

func (p *Poller) params(room int, sources []store.Source) store.ClaimParams {
	return store.ClaimParams{Queue: p.Queue, Worker: p.WorkerID, Lease: p.LeaseLength, Limit: room, Sources: sources}
}

// send sends a claim of up to room tasks, which may take up to limit, and reports whether it timed out.
// The claim is not cancelled when ctx ends: if its answer were lost, its tasks would wait for the end of
// their leases.
func (p *Poller) send(ctx context.Context, limit time.Duration, room int, claim func(context.Context) ([]*store.Claim, error)) (claims []*store.Claim, late bool, err error) {
	ctx, cancel := retry.DelayedContext(ctx, limit, retry.ClaimDelay)
	defer cancel()
	p.Budget.Claiming(room)
	start := time.Now()
	claims, err = claim(ctx)
	p.Budget.Claimed(len(claims), room)
	if err == nil {
		p.outage.answered()
	}
	if !errors.Is(err, store.ErrNoSlot) { // without a slot nothing was claimed
		p.Observer.Claimed(p.Queue, room, claims, start, err)
	}
	if len(claims) > 0 {
		p.took.Record(time.Since(start))
		p.expiry.claimed(claims)
		p.lastClaim.Store(time.Now().UnixNano())
	}
	return claims, ctx.Err() != nil, err
}

// learn records the state of the lanes after a claim that began at start. A lane is still due, from the last taken task
// on, if the claim has taken all tasks that it requested, or its share of the lane. The next task of an emptied lane is
// unknown until the next sweep, which comes soon unless the lane's first task cannot be claimed.
func (p *Poller) learn(due []store.Lane, sources []store.Source, policies []*control.CompiledPolicy, claims []*store.Claim, room int, start time.Time) {
	full, took, left := len(claims) >= room, map[store.Lane]int64{}, map[store.Lane]bool{}
	count := 0
	for i, c := range claims {
		count++
		if i+1 < len(claims) && claims[i+1].Place == c.Place {
			continue
		}
		// c is the last claim of its lane: the claims of a lane are in the order of their anchors.
		from := sources[c.Place-1]
		p.lanes.Took(c.From, count)
		if full || from.Room > 0 && count >= from.Room {
			p.lanes.Advance(c.From, start.Add(policies[c.Place-1].DelayIn(c.From)-store.Duration(c.Now-c.Anchor)), c.Anchor)
			left[c.From] = true
		} else {
			took[c.From] = c.Anchor
		}
		count = 0
	}
	if !full {
		emptied := slices.DeleteFunc(slices.Clone(due), func(at store.Lane) bool { return left[at] })
		if p.lanes.Emptied(emptied, took, start) || len(claims) > 0 {
			p.search.makeDueSoon()
		}
		return
	}
	if len(claims) >= slotThreshold && p.ParallelClaims {
		retry.Signal(p.assistWanted)
	}
}
