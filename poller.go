package falldue

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// poller finds due tasks of one queue, claims them and hands them to handlers.
// It remembers the queue's lanes and claims from those with something due; it
// sweeps for new ones at every poll, and sleeps until the next falls due. While
// large claims come back full, a second one is under way beside the first: one
// loop alone leaves the database idle while its answer is read.
type poller struct {
	w     *worker
	queue string
	limit int // handlers at once
	runs  runners
	turn  int64 // the turns that its claims take
	freed chan struct{}

	more  chan struct{} // there is more than one claim at a time can take
	turns queueing

	unfinished atomic.Int64 // claimed or being claimed, their handlers not returned
	finished   atomic.Int64 // handlers that returned since the last claim

	wakes   chan struct{}
	lookNow atomic.Bool // look for tasks that nobody told of

	mu       sync.Mutex
	lanes    lanes
	rate     float64 // handlers returning a second, of late
	rateFrom time.Time
	sweepAt  time.Time
	cost     time.Duration // of the last sweep
	gait     gait          // of the next one; loop alone uses it

	told map[oddity]bool // by the last sweep; loop alone uses it
}

// oddity is what is wrong with the first task of a lane, of which to tell once.
type oddity struct {
	lane
	what string
}

const (
	// maxPrefetch bounds the tasks that wait in memory for a handler.
	maxPrefetch = 2 * maxBatch
	// prefetchFor is for how long a worker fetches ahead, at the rate at which
	// its handlers return: enough to hide a claim, not enough to keep tasks
	// from workers that are idle.
	prefetchFor = 20 * time.Millisecond
	// maxLanes bounds the lanes of one claim.
	maxLanes = 128
	// sweepTimeout bounds a sweep, so that a worker does not stand still because
	// a connection does. Where an engine reads every task that waits for it, a
	// sweep takes seconds.
	sweepTimeout = 2 * statementTimeout
)

func newPoller(w *worker, queue string, limit int) *poller {
	return &poller{
		w: w, queue: queue, limit: limit, turn: turnOf(w.q.cfg, queue, w.handlers), lanes: lanes{}, rateFrom: time.Now(),
		freed: make(chan struct{}, 1), wakes: make(chan struct{}, 1), more: make(chan struct{}, 1),
	}
}

// tell notes that a lane has a task that falls due after wait, and wakes the
// poller.
func (p *poller) tell(at lane, wait time.Duration) {
	if p.w.handlers[at.kind] == nil {
		return
	}
	p.mu.Lock()
	p.lanes.hint(at, time.Now().Add(wait))
	p.mu.Unlock()
	signal(p.wakes)
}

// look makes the poller sweep at once.
func (p *poller) look() {
	p.lookNow.Store(true)
	signal(p.wakes)
}

// signal wakes whoever waits on c, now or when it next looks.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// loop claims until ctx ends.
func (p *poller) loop(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		room := p.room()
		if room == 0 {
			p.wait(ctx, p.freed, time.Hour)
			continue
		}
		next, err := p.round(ctx, room)
		if err != nil {
			if ctx.Err() == nil {
				p.w.q.cfg.Logger.Warn("falldue: cannot poll", "queue", p.queue, "error", err)
				p.wait(ctx, nil, errorPause(failures)+rand.N(50*time.Millisecond))
			}
			failures++
			continue
		}
		failures = 0
		if next > 0 {
			p.wait(ctx, p.wakes, next)
		}
	}
}

// wait sleeps for d, until c is signalled, or until ctx ends.
func (p *poller) wait(ctx context.Context, c <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-c:
	case <-t.C:
	}
}

// assist claims beside loop while there is more, until ctx ends.
func (p *poller) assist(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.more:
		}
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		due := p.lanes.due(time.Now(), maxLanes)
		p.mu.Unlock()
		room := p.room()
		if len(due) == 0 || room == 0 {
			continue
		}
		if _, err := p.claim(ctx, due, room, room >= turnSize); err != nil && !errors.Is(err, errNoTurn) {
			p.w.q.cfg.Logger.Warn("falldue: cannot claim", "queue", p.queue, "error", err)
		}
	}
}

// room is how many tasks to claim now: 0 while enough are at hand, or wait to be
// settled.
func (p *poller) room() int {
	if p.w.settler.behind() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := time.Since(p.rateFrom); since > 5*time.Millisecond {
		now := float64(p.finished.Swap(0)) / since.Seconds()
		p.rate, p.rateFrom = (p.rate+now)/2, time.Now()
	}
	ahead := min(int(p.rate*prefetchFor.Seconds()), maxPrefetch)
	room := p.limit + ahead - int(p.unfinished.Load())
	if room <= ahead/2 {
		return 0
	}
	return min(room, maxBatch)
}

// round sweeps if it is time to, claims what is due, and says how long to
// sleep: 0 for not at all.
func (p *poller) round(ctx context.Context, room int) (time.Duration, error) {
	p.mu.Lock()
	sweeps := !time.Now().Before(p.sweepAt)
	if p.lookNow.Swap(false) && !sweeps {
		sweeps = !p.guess() // then the next round does, whatever comes in until then
		p.sweepAt = time.Now()
	}
	p.mu.Unlock()
	if sweeps {
		if err := p.sweep(ctx); err != nil {
			return 0, err
		}
	}
	p.mu.Lock()
	due := p.lanes.due(time.Now(), maxLanes)
	p.mu.Unlock()
	if len(due) > 0 {
		n, err := p.claim(ctx, due, room, p.turns.needs(max(room, p.limit)))
		if errors.Is(err, errNoTurn) {
			p.wait(ctx, nil, p.turns.again())
			return 0, nil
		}
		p.turns.claimed(n, room)
		return 0, err
	}
	p.turns.claimed(0, room)
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.sweepAt
	if first, ok := p.lanes.next(); ok && first.Before(until) {
		until = first
	}
	return max(time.Until(until), time.Microsecond), nil
}

// guess takes the lanes of new tasks without options for due, and reports
// whether it is worth while to claim before the sweep: what others just enqueued
// is most often there, and starts in half the time. The caller holds mu.
func (p *poller) guess() bool {
	if !statements.ClaimsAtOnce(p.w.q.store.server) {
		return false // there each lane is a statement
	}
	now := time.Now()
	for name, h := range p.w.handlers {
		if h.kind.Queue == p.queue {
			p.lanes.hint(lane{state: statements.StateOpen, priority: h.kind.Priority, kind: name}, now)
		}
	}
	return true
}

// sweep finds the queue's lanes anew.
func (p *poller) sweep(ctx context.Context) error {
	ctx, end := unhurried(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	p.mu.Lock()
	p.lanes.ask(maps.Keys(p.lanes))
	p.mu.Unlock()
	start := time.Now()
	store := p.w.q.store
	heads, steps, err := p.gait.sweep(ctx, store, p.queue)
	// A sweep that was too slow for its session's limit was slow, too. The next one
	// is another matter once the server has counted.
	took := time.Since(start)
	counted := took > slowSweep && !steps && store.recount(ctx)
	if store.server.Caps.LooseScan && !counted {
		p.gait.took(took, len(heads), time.Now())
	}
	if err != nil {
		return err
	}
	every := p.w.q.cfg.PollInterval
	found := lanes{}
	told := map[oddity]bool{}
	for _, h := range heads {
		if what := h.nonsense(); what != "" {
			odd := oddity{h.lane, what}
			told[odd] = true
			if !p.told[odd] {
				p.w.q.cfg.Logger.Error("falldue: a task was edited into nonsense", "what", what, "queue", p.queue, "kind", h.kind,
					"state", h.state, "priority", h.priority, "attempts", h.attempts, "updated_at", moment(h.anchor))
			}
		}
		if h.unreadable != nil {
			continue
		}
		if rule := p.ruleOf(ctx, h.lane); rule != nil {
			found[h.lane] = front{
				due:   start.Add(rule.delayIn(h.lane) - micros(h.now-max(h.anchor, 0))),
				since: max(h.anchor, dawn), stuck: h.anchor < firstAnchor,
			}
		}
	}
	p.told = told
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cost = time.Since(start)
	p.sweepAt = time.Now().Add(every + rand.N(every/10+1))
	p.lanes.found(found, start)
	return nil
}

// ruleOf returns the policy that holds in a lane, and nil for a lane that this
// worker leaves alone: of a kind it has no handler for, or of a policy it
// cannot read.
func (p *poller) ruleOf(ctx context.Context, at lane) *rule {
	h := p.w.handlers[at.kind]
	if h == nil {
		return nil
	}
	if at.policy == "" {
		return h.rule
	}
	rule, err := p.w.q.policies.get(ctx, at.policy)
	if err != nil {
		p.w.q.cfg.Logger.Error("falldue: tasks wait because their policy cannot be read", "queue", p.queue, "kind", at.kind, "error", err)
		return nil
	}
	return rule
}

// claim takes tasks from lanes that seem due, hands them to the handlers and
// returns how many there were.
func (p *poller) claim(ctx context.Context, due []lane, room int, inTurn bool) (int, error) {
	all := make([]want, len(due))
	p.mu.Lock()
	p.lanes.ask(slices.Values(due))
	for i, at := range due {
		all[i] = want{lane: at, since: p.lanes[at].since}
	}
	p.mu.Unlock()
	wants := all[:0]
	for _, w := range all {
		if w.rule = p.ruleOf(ctx, w.lane); w.rule != nil {
			wants = append(wants, w)
		}
	}
	if len(wants) == 0 {
		p.learn(due, nil, nil, room, time.Now())
		return 0, nil
	}
	// To stop must not cut off an answer: what was claimed would wait for its
	// lease to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	start := time.Now()
	p.unfinished.Add(int64(room))
	turn := int64(0)
	if inTurn {
		turn = p.turn
	}
	got, err := p.w.q.store.claim(ctx, claimParams{p.queue, p.w.id, p.w.q.cfg.Lease, room, turn, wants})
	p.unfinished.Add(int64(len(got) - room))
	if len(got) < room {
		signal(p.freed) // somebody may wait for the room that this claim did not need
	}
	if err != nil {
		return 0, err
	}
	p.learn(due, wants, got, room, start)
	runs := make([]*run, len(got))
	for i, c := range got {
		runs[i] = &run{
			worker: p.w, poller: p, claim: c, rule: wants[c.place-1].rule, handler: p.w.handlers[c.was.kind],
			claimed: start, until: start.Add(p.w.q.cfg.Lease),
		}
	}
	p.w.leases.hold(runs...)
	p.runs.add(runs...)
	return len(got), nil
}

// learn updates what is known of the lanes that were claimed from. A lane whose
// tasks were not all taken is due still, from the last one taken on; of one
// that was emptied the next task is unknown until the next sweep, which comes
// soon, but never takes more than a tenth of the time.
func (p *poller) learn(due []lane, wants []want, got []*claim, room int, start time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(got) == room {
		for i, c := range got {
			if i+1 < len(got) && got[i+1].place == c.place {
				continue // it is not the last of its lane
			}
			f := p.lanes[c.was]
			due := start.Add(wants[c.place-1].rule.delayIn(c.was) - micros(c.now-c.anchor))
			p.lanes[c.was] = front{due: due, since: max(f.since, c.anchor), stuck: f.stuck}
		}
		// Without row locks two claims of one worker may find the same tasks, and
		// could not tell which of them took a task.
		if len(got) >= turnSize && p.w.q.store.server.Caps.LockRows {
			signal(p.more)
		}
		return
	}
	emptied := false
	for _, at := range due {
		if f, ok := p.lanes[at]; ok && !f.due.After(start) {
			emptied = emptied || !f.stuck
			p.lanes.emptied(at)
		}
	}
	if !emptied && len(got) == 0 {
		return
	}
	if soon := time.Now().Add(max(10*p.cost, 20*time.Millisecond)); soon.Before(p.sweepAt) {
		p.sweepAt = soon
	}
}
