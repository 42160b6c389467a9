package claim

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// claimLimited claims up to room tasks from lanes that seem due and have limits, and passes
// them to the dispatcher. It leaves out lanes with limits of another claim, and returns the number of the others.
func (p *Poller) claimLimited(ctx context.Context, due []store.Lane, room int) (lanes int, err error) {
	due, limits, end := p.lanes.BeginLimited(due, maxLimitedSources)
	defer end()
	var params store.ClaimParams
	var policies []*control.CompiledPolicy
	var left []store.Lane // lanes that claims leave out
	for i, from := range p.lanes.BeginClaim(due) {
		if policy := p.Policies.Of(from.Lane, func() { p.Hint(from.Lane, 0) }); policy != nil {
			source := p.source(from, policy)
			source.Limits, source.LeaveExpired = limits[i], p.expiry.cancels(from.Lane)
			params.Sources, policies = append(params.Sources, source), append(policies, policy)
		} else {
			left = append(left, from.Lane)
		}
	}
	if len(left) > 0 {
		p.learn(left, nil, nil, nil, room, time.Now())
	}
	if len(params.Sources) == 0 {
		return len(due), nil
	}
	params = p.params(room, params.Sources)
	start := time.Now()
	var result store.Limited
	claims, _, err := p.send(ctx, retry.StatementTimeout, room, func(ctx context.Context) (_ []*store.Claim, err error) {
		result, err = p.Table.ClaimLimited(ctx, params)
		return result.Claims, err
	})
	if err != nil {
		p.suspects.add(params.Sources)
		return len(due), err
	}
	p.learnLimited(params.Sources, policies, result, start)
	if len(claims) >= slotThreshold && p.ParallelClaims {
		retry.Signal(p.assistWanted)
	}
	p.Dispatcher.Take(claims, policies, start)
	return len(due), nil
}

// learnLimited records the state of the lanes after a claim under limits that began at start.
func (p *Poller) learnLimited(sources []store.Source, policies []*control.CompiledPolicy, result store.Limited, start time.Time) {
	taken := make([][]*store.Claim, len(sources)) // from each lane
	for _, c := range result.Claims {
		taken[c.Place-1] = append(taken[c.Place-1], c)
	}
	ours := map[string]bool{} // limits with permits that this claim took
	for i, claims := range taken {
		if len(claims) == 0 {
			continue
		}
		for _, l := range sources[i].Limits {
			ours[l.Name] = true
		}
		if held := p.lanes.HeldUntil(sources[i].Lane); !held.IsZero() {
			for _, c := range claims {
				c.HeldUntil = c.Now - start.Sub(held).Microseconds()
			}
		}
	}
	var emptied []store.Lane
	took := map[store.Lane]int64{}
	for i, rest := range result.Rests {
		at := sources[i].Lane
		var c *store.Claim // the last one
		if claims := taken[i]; len(claims) > 0 {
			c = claims[len(claims)-1]
			p.lanes.Took(at, len(claims))
		}
		if rest.Why == store.Emptied {
			emptied = append(emptied, at)
			if c != nil {
				took[at] = c.Anchor
			}
			continue
		}
		if rest.Why == store.LeftExpired {
			p.lanes.Park(at, expiryOf(at), p.search.every, 0, 0)
			p.expiry.left(at)
			continue
		}
		if c != nil && rest.Why != store.Outrun { // an outrun claim may leave tasks before its last one
			p.lanes.Advance(at, start.Add(policies[i].DelayIn(at)-store.Duration(c.Now-c.Anchor)), c.Anchor)
		}
		p.park(at, rest, start, ours[rest.Name])
	}
	if len(emptied) > 0 && (p.lanes.Emptied(emptied, took, start) || len(took) > 0) {
		p.search.makeDueSoon()
	}
	p.lanes.Open(result.Open)
}

// park makes a lane wait for the limit that has held back its tasks, if any. The claim began at start. If it
// took permits of the limit, as ours reports, this process knows when their tasks end, and need not try to find out.
func (p *Poller) park(at store.Lane, rest store.Rest, start time.Time, ours bool) {
	least := time.Duration(0)
	if ours {
		least = maxSlotWait
	}
	switch rest.Why {
	case store.Saturated:
		if next := rest.Next; next != nil && next.Queue == p.Queue { // the tracker knows only lanes of this queue
			if policy := p.Policies.Of(next.Lane, nil); policy != nil {
				delay := policy.DelayIn(next.Lane)
				due := start.Add(delay - store.Duration(next.Now-next.Anchor))
				p.lanes.ParkBehind(at, rest.Name, lanes.FirstTask{Lane: next.Lane, Due: due, Delay: delay, Anchor: next.Anchor, Now: next.Now}, p.search.every)
				return
			}
		}
		p.lanes.Park(at, rest.Name, rest.Wait, least, p.search.every)
	case store.Outrun:
		p.lanes.Park(at, rest.Name, 0, least, maxSlotWait)
	default:
	}
}

// Freed makes the poller claim from lanes that limits have held back. The limits may admit more tasks now.
func (p *Poller) Freed(limits []string) {
	p.lanes.Freed(limits)
	retry.Signal(p.woken)
}

// Limiter knows the limits of a queue's lanes.
type Limiter struct {
	limits   []store.Limit // of the queue
	handlers map[string]*run.Handler
	Any      bool // some tasks have limits
}

// NewLimiter returns a limiter of a queue. limits are the queue's.
func NewLimiter(limits []store.Limit, handlers map[string]*run.Handler) Limiter {
	l := Limiter{limits: limits, handlers: handlers, Any: len(limits) > 0}
	for _, h := range handlers {
		l.Any = l.Any || len(h.Limits) > 0
	}
	return l
}

// LimitsOf returns the limits of the tasks of a lane.
func (l Limiter) LimitsOf(at store.Lane) (limits []store.Limit) {
	if !l.Any {
		return nil
	}
	limits = store.LimitsOf(nil, l.limits, at.Key)
	if h := l.handlers[at.Kind]; h != nil {
		limits = store.LimitsOf(limits, h.Limits, at.Key)
	}
	return limits
}

// Ordered reports whether the tasks of a lane are in a sequence.
func (l Limiter) Ordered(at store.Lane) bool {
	if !l.Any || at.Key == "" {
		return false
	}
	h := l.handlers[at.Kind]
	return store.Ordered(l.limits) || h != nil && store.Ordered(h.Limits)
}

// Weight returns the weight of a lane's turn.
func (l Limiter) Weight(at store.Lane) int {
	if h := l.handlers[at.Kind]; h != nil && h.Weight != nil {
		return h.WeightOf(store.TurnOf(at).Key)
	}
	return 1
}

// Limited reports whether the tasks of a lane have limits.
func (l Limiter) Limited(at store.Lane) bool {
	if !l.Any {
		return false
	}
	h := l.handlers[at.Kind]
	return store.Limits(l.limits, at.Key) || h != nil && store.Limits(h.Limits, at.Key)
}
