package claim

import (
	"context"
	"math"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// claimSuspect claims up to room tasks from a lane from which a claim failed, and passes
// them to the dispatcher.
func (p *Poller) claimSuspect(ctx context.Context, suspect *suspect, at store.Lane, room int) error {
	p.lanes.BeginLimited()
	since, start, r := p.lanes.BeginClaim([]store.Lane{at})[0], time.Now(), p.Gates.policyOf(at, func() { p.Hint(at, 0) })
	if r == nil {
		p.learn([]store.Lane{at}, nil, nil, room, start)
		return nil
	}
	from := p.source(at, r, since)
	claim := func(ctx context.Context, list []store.Candidate) (_ []*store.Claim, rest store.Rest, late bool, err error) {
		sent := time.Now()
		claims, late, err := p.send(ctx, retry.SuspectTimeout, len(list), func(ctx context.Context) ([]*store.Claim, error) {
			result, err := p.ClaimKeys(ctx, p.params(len(list), []store.Source{from}), list)
			if err == nil {
				rest = result.Rests[0]
			}
			return result.Claims, err
		})
		if err == nil && len(claims) > 0 {
			p.Dispatch(claims, []*control.CompiledPolicy{r}, sent)
		}
		return claims, rest, late, err
	}
	claims, rest, complete, err := p.suspects.claim(ctx, suspect, from, room, claim)
	switch {
	case complete && rest.Held():
		if len(claims) > 0 {
			p.lanes.Admitted(at)
		}
		p.holdBack(at, rest)
		return nil
	case complete:
		p.learn([]store.Lane{at}, []*control.CompiledPolicy{r}, claims, room, start)
		return nil
	}
	p.lanes.Advance(at, suspect.next, math.MinInt64)
	if len(claims) == 0 && retry.KindOf(p.Classify(err), false) == retry.Outage {
		return err
	}
	p.events().claimFailed(p.Queue, err)
	return nil
}
