package falldue

import (
	"context"
	"math"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// claimSuspect claims up to room tasks from a lane from which a claim failed, and passes
// them to the dispatcher.
func (p *poller) claimSuspect(ctx context.Context, suspect *suspect, at store.Lane, room int) error {
	p.lanes.beginLimited()
	since, start, r := p.lanes.beginClaim([]store.Lane{at})[0], time.Now(), p.gates.rule(at, func() { p.hint(at, 0) })
	if r == nil {
		p.learn([]store.Lane{at}, nil, nil, room, start)
		return nil
	}
	from := p.source(at, r, since)
	claim := func(ctx context.Context, list []store.Candidate) (_ []*store.Claim, rest store.Rest, late bool, err error) {
		sent := time.Now()
		claims, late, err := p.send(ctx, suspectTimeout, len(list), func(ctx context.Context) ([]*store.Claim, error) {
			result, err := p.claimKeys(ctx, p.params(len(list), []store.Source{from}), list)
			if err == nil {
				rest = result.Rests[0]
			}
			return result.Claims, err
		})
		if err == nil && len(claims) > 0 {
			p.dispatch(claims, []*rule{r}, sent)
		}
		return claims, rest, late, err
	}
	claims, rest, complete, err := p.suspects.claim(ctx, suspect, from, room, claim)
	switch {
	case complete && rest.Held():
		if len(claims) > 0 {
			p.lanes.admitted(at)
		}
		p.holdBack(at, rest)
		return nil
	case complete:
		p.learn([]store.Lane{at}, []*rule{r}, claims, room, start)
		return nil
	}
	p.lanes.advance(at, suspect.next, math.MinInt64)
	if len(claims) == 0 && troubleOf(p.classify(err), false) == outage {
		return err
	}
	p.events.claimFailed(p.queue, err)
	return nil
}
