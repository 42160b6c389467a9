package claim

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// claimLimited claims up to room tasks from lanes that seem due and have limits, and passes
// them to the dispatcher.
func (p *poller) claimLimited(ctx context.Context, due []store.Lane, room int) error {
	p.Lanes.BeginLimited()
	since := p.Lanes.BeginClaim(due)
	var params store.ClaimParams
	var rules []*control.CompiledPolicy
	var left []store.Lane // out by the gates
	for i, at := range due {
		if rule := p.Gates.PolicyOf(at, func() { p.Hint(at, 0) }); rule != nil {
			params.Sources, rules = append(params.Sources, p.source(at, rule, since[i])), append(rules, rule)
		} else {
			left = append(left, at)
		}
	}
	if len(left) > 0 {
		p.learn(left, nil, nil, room, time.Now())
	}
	if len(params.Sources) == 0 {
		return nil
	}
	params = p.params(room, params.Sources)
	start := time.Now()
	var result store.Limited
	claims, _, err := p.send(ctx, retry.StatementTimeout, room, func(ctx context.Context) (_ []*store.Claim, err error) {
		result, err = p.ClaimUnderLimits(ctx, params)
		return result.Claims, err
	})
	if err != nil {
		p.suspects.Add(params.Sources)
		return err
	}
	p.learnLimited(params.Sources, rules, result, start)
	p.Dispatch(claims, rules, start)
	return nil
}

// learnLimited records what a claim under limits that began at start left in the lanes.
func (p *poller) learnLimited(sources []store.Source, rules []*control.CompiledPolicy, result store.Limited, start time.Time) {
	last := map[store.Lane]*store.Claim{} // of each lane
	for _, c := range result.Claims {
		last[c.From] = c
	}
	var emptied []store.Lane
	took := map[store.Lane]int64{}
	for i, rest := range result.Rests {
		at := sources[i].Lane
		c := last[at]
		if c != nil {
			p.Lanes.Admitted(at)
		}
		if rest.Hold == store.Emptied {
			emptied = append(emptied, at)
			if c != nil {
				took[at] = c.Anchor
			}
			continue
		}
		if c != nil && rest.Hold != store.Outrun { // which may leave tasks before the last one
			p.Lanes.Advance(at, start.Add(rules[i].DelayIn(at)-store.Duration(c.Now-c.Anchor)), c.Anchor)
		}
		p.holdBack(at, rest)
	}
	if len(emptied) > 0 && (p.Lanes.Emptied(emptied, took, start) || len(took) > 0) {
		p.Sweeper.makeDueSoon()
	}
	p.Lanes.Freed(result.Open)
}

// holdBack makes a lane wait for the limit that has left its tasks, if one has.
func (p *poller) holdBack(at store.Lane, rest store.Rest) {
	switch rest.Hold {
	case store.Saturated:
		p.Lanes.Park(at, rest.Name, rest.Wait, p.Sweeper.Every)
	case store.Outrun:
		p.Lanes.Park(at, rest.Name, 0, MaxSlotWait)
	default:
	}
}

// Freed makes the poller claim from lanes that limits have held back, which may admit more
// tasks now.
func (p *poller) Freed(limits []string) {
	p.Lanes.Freed(limits)
	retry.Signal(p.woken)
}
