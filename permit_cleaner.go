package falldue

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// permitPause is the time between two looks at some permits, and permitRound that
	// between two looks at all of them.
	permitPause, permitRound = 5 * time.Second, 10 * time.Minute
	// keepPermits is how long permits are kept that nobody has.
	keepPermits = time.Hour
)

// permitCleaner is the role that deletes the permits of limits that are no longer needed,
// such as those of keys that have no tasks.
type permitCleaner struct {
	drop   func(ctx context.Context, after int64, keep time.Duration) (last int64, err error)
	events events
}

// work cleans until ctx ends.
func (c *permitCleaner) work(ctx context.Context) {
	var after int64
	wait := permitRound
	for pause(ctx, wait/2+rand.N(wait)) == nil {
		after, wait = c.clean(ctx, after), permitPause
		if after == 0 {
			wait = permitRound
		}
	}
}

// clean deletes some permits, and returns the last one that it looked at, or 0 after all.
func (c *permitCleaner) clean(ctx context.Context, after int64) (last int64) {
	limited, cancel := statementContext(ctx, statementTimeout)
	defer cancel()
	last, err := c.drop(limited, after, keepPermits)
	if err != nil && ctx.Err() == nil {
		c.events.permitsFailed(err)
	}
	return last
}
