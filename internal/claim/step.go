package claim

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// ClaimOne claims the first task of a lane under its limits, or returns how long they hold the task back.
// Package tasktest runs tasks one at a time.
func (p *Poller) ClaimOne(ctx context.Context, first store.Head, r *control.CompiledPolicy) (claims []*store.Claim, held time.Duration, err error) {
	source := p.source(store.Source{Lane: first.Lane, Since: max(first.Anchor, earliestMoment)}, r)
	source.Limits = p.Limiter.LimitsOf(first.Lane)
	params := p.params(1, []store.Source{source})
	claims, _, err = p.send(ctx, retry.StatementTimeout, 1, func(ctx context.Context) ([]*store.Claim, error) {
		if len(source.Limits) == 0 {
			return p.Table.Claim(ctx, params)
		}
		result, err := p.Table.ClaimLimited(ctx, params)
		for _, rest := range result.Rests {
			held = rest.Wait
		}
		return result.Claims, err
	})
	return claims, held, err
}

// LanesNow returns the first task of each lane of the queue.
func (p *Poller) LanesNow(ctx context.Context) ([]store.Head, error) {
	start := time.Now()
	heads, err := p.Sweeper.all(ctx, p.Queue)
	p.Observer.Swept(p.Queue, len(heads), start, err)
	return heads, err
}
