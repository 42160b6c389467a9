package falldue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// poller claims due tasks of one queue and hands them to handlers. It claims from
// the lanes of which its tracker knows that something is due, sweeps for new ones
// at every poll, and sleeps until the next task falls due. While large claims come
// back full, a second claim is under way beside the first: one loop alone leaves
// the database idle while its answer is read.
type poller struct {
	pollerConfig
	lanes   *laneTracker
	sweeper *sweeper
	meter   *meter
	slots   slotWaiter

	freed   chan struct{} // a handler returned, or settlers caught up
	woken   chan struct{} // something fell due, or may have
	another chan struct{} // there is more than one claim at a time can take
	lookNow atomic.Bool   // look for tasks that this worker has not been notified of
}

// pollerConfig is what a poller works with.
type pollerConfig struct {
	queue, workerID string
	leaseLength     time.Duration
	handlers        map[string]*handler // by kind
	gates           gates
	slot            int64 // identifies the claim slots that its claims take

	claimRows  func(context.Context, store.ClaimParams) ([]*store.Claim, error)
	hand       func([]*store.Claim, []*rule, time.Time) // hands claims to handlers
	behind     func() bool                              // as many tasks wait to be settled as claims should wait for
	guesses    bool                                     // a claim from many lanes costs about what one from a single lane does
	sideBySide bool                                     // claims may run beside each other
	events     events
}

// maxSources bounds the lanes of one claim.
const maxSources = 128

func newPoller(cfg pollerConfig, limit int, every time.Duration, heads func(context.Context) ([]store.Head, error)) *poller {
	lanes := newLaneTracker()
	return &poller{
		pollerConfig: cfg, lanes: lanes, meter: newMeter(limit),
		sweeper: &sweeper{queue: cfg.queue, every: every, heads: heads, lanes: lanes, gates: cfg.gates, events: cfg.events},
		freed:   make(chan struct{}, 1), woken: make(chan struct{}, 1), another: make(chan struct{}, 1),
	}
}

// hint notes that a lane has a task that falls due after wait, and wakes the
// poller.
func (p *poller) hint(at store.Lane, wait time.Duration) {
	if p.handlers[at.Kind] == nil {
		return
	}
	p.lanes.hint(at, time.Now().Add(wait))
	signal(p.woken)
}

// look makes the poller sweep at once.
func (p *poller) look() {
	p.lookNow.Store(true)
	signal(p.woken)
}

// loop claims until ctx ends.
func (p *poller) loop(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		room := p.room()
		if room == 0 {
			await(ctx, p.freed, time.Hour)
			continue
		}
		next, err := p.round(ctx, room)
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
		case <-p.another:
		}
		if ctx.Err() != nil {
			return
		}
		due, room := p.lanes.due(time.Now(), maxSources), p.room()
		if len(due) == 0 || room == 0 {
			continue
		}
		if _, err := p.claim(ctx, due, room, room >= slotSize); err != nil && !errors.Is(err, store.ErrNoSlot) {
			p.events.claimFailed(p.queue, err)
		}
	}
}

// room is how many tasks to claim now: 0 while enough are at hand, or wait to be
// settled.
func (p *poller) room() int {
	if p.behind() {
		return 0
	}
	return p.meter.room()
}

// round sweeps if it is time to, claims what is due, and returns how long to
// sleep: 0 for not at all.
func (p *poller) round(ctx context.Context, room int) (time.Duration, error) {
	sweeps := !time.Now().Before(p.sweeper.next())
	if p.lookNow.Swap(false) && !sweeps {
		sweeps = !p.guess() // where it guesses the next round sweeps, whatever comes in until then
		p.sweeper.makeDue()
	}
	if sweeps {
		if err := p.sweeper.sweep(ctx); err != nil {
			return 0, err
		}
	}
	if due := p.lanes.due(time.Now(), maxSources); len(due) > 0 {
		n, err := p.claim(ctx, due, room, p.slots.needed(max(room, p.meter.limit)))
		if errors.Is(err, store.ErrNoSlot) {
			await(ctx, nil, p.slots.refused())
			return 0, nil
		}
		p.slots.claimed(n, room)
		return 0, err
	}
	p.slots.claimed(0, room)
	until := p.sweeper.next()
	if first, ok := p.lanes.next(); ok && first.Before(until) {
		until = first
	}
	return max(time.Until(until), time.Microsecond), nil
}

// guess takes the lanes of new tasks without options for due, and reports whether
// that makes it worth claiming before the sweep: what others just enqueued is most
// often there, and starts in half the time.
func (p *poller) guess() bool {
	if !p.guesses {
		return false
	}
	now := time.Now()
	for name, h := range p.handlers {
		if h.kind.Queue == p.queue {
			p.lanes.hint(store.Lane{State: statements.StateOpen, Priority: h.kind.Priority, Kind: name}, now)
		}
	}
	return true
}

// claim takes tasks from lanes that seem due, hands them to the handlers and
// returns how many there were.
func (p *poller) claim(ctx context.Context, due []store.Lane, room int, inSlot bool) (int, error) {
	since := p.lanes.beginClaim(due)
	sources, rules := make([]store.Source, 0, len(due)), make([]*rule, 0, len(due))
	for i, at := range due {
		if rule := p.gates.rule(ctx, at); rule != nil {
			sources, rules = append(sources, store.Source{Lane: at, Delay: rule.delay, Since: since[i]}), append(rules, rule)
		}
	}
	if len(sources) == 0 {
		p.learn(due, nil, nil, room, time.Now())
		return 0, nil
	}
	// To stop must not cut off an answer: what was claimed would wait for the end
	// of its lease.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	params := store.ClaimParams{Queue: p.queue, Worker: p.workerID, Lease: p.leaseLength, Limit: room, Sources: sources}
	if inSlot {
		params.Slot = p.slot
	}
	start := time.Now()
	p.meter.claiming(room)
	claims, err := p.claimRows(ctx, params)
	p.meter.claimed(len(claims), room)
	if len(claims) < room {
		signal(p.freed) // somebody may wait for the room that this claim did not need
	}
	if err != nil {
		return 0, err
	}
	p.learn(due, rules, claims, room, start)
	p.hand(claims, rules, start)
	return len(claims), nil
}

// learn notes what a claim that began at start found out about lanes. A lane whose
// tasks were not all taken is still due, from the last one taken on. Of a lane that
// was emptied the next task is unknown until the next sweep, which comes soon.
func (p *poller) learn(due []store.Lane, rules []*rule, claims []*store.Claim, room int, start time.Time) {
	if len(claims) < room {
		if p.lanes.emptied(due, start) || len(claims) > 0 {
			p.sweeper.makeDueSoon()
		}
		return
	}
	for i, c := range claims {
		if i+1 == len(claims) || claims[i+1].Place != c.Place { // the last of its lane
			p.lanes.advance(c.Was, start.Add(rules[c.Place-1].delayIn(c.Was)-store.Duration(c.Now-c.Anchor)), c.Anchor)
		}
	}
	if len(claims) >= slotSize && p.sideBySide {
		signal(p.another)
	}
}
