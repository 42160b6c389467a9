package falldue

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// cleanEvery is the time between two searches for finished tasks whose retention is
// over.
const cleanEvery = time.Minute

// cleaner is the role that deletes finished tasks whose retention is over.
type cleaner struct {
	queues                       []string
	doneRetention, deadRetention time.Duration // a deadRetention of 0 is for ever
	clean                        func(ctx context.Context, queue, state string, retention time.Duration) (int, error)
	events                       events
}

// work cleans until ctx ends.
func (c *cleaner) work(ctx context.Context) {
	for {
		for _, queue := range c.queues {
			c.cleanState(ctx, queue, statements.StateDone, c.doneRetention)
			if c.deadRetention > 0 {
				c.cleanState(ctx, queue, statements.StateDead, c.deadRetention)
				c.cleanState(ctx, queue, statements.StateCancelled, c.deadRetention)
			}
		}
		every := cleanEvery
		if c.doneRetention > 0 {
			every = min(every, max(c.doneRetention, time.Second))
		}
		if pause(ctx, every+rand.N(every/10)) != nil {
			return
		}
	}
}

// cleanState deletes the tasks of a queue and a state whose retention is over, a
// batch at a time.
func (c *cleaner) cleanState(ctx context.Context, queue, state string, retention time.Duration) {
	for ctx.Err() == nil {
		n, err := c.cleanBatch(ctx, queue, state, retention)
		if err != nil && ctx.Err() == nil {
			c.events.cleanFailed(queue, state, err)
		}
		if err != nil || n < store.MaxBatch {
			return
		}
	}
}

func (c *cleaner) cleanBatch(ctx context.Context, queue, state string, retention time.Duration) (int, error) {
	ctx, cancel := statementContext(ctx, statementTimeout)
	defer cancel()
	return c.clean(ctx, queue, state, retention)
}
