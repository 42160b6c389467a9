package upkeep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

const (
	// pageWait is the time between two looks at some rows, and roundWait that between two
	// looks at all of them.
	pageWait, roundWait = 5 * time.Second, 10 * time.Minute
	// keepPermits and keepUniques are how long permits and unique keys are kept that
	// nobody has.
	keepPermits, keepUniques = time.Hour, 10 * time.Minute
)

// PageCleaner is a role that deletes what is no longer needed of a table, some rows at a
// time: the permits of limits, of keys that have no tasks for example, or unique keys.
type PageCleaner[At comparable] struct {
	// drop looks at some rows after one, and returns the last one, or the zero value after
	// all rows.
	drop   func(ctx context.Context, after At, keep time.Duration) (last At, err error)
	keep   time.Duration
	failed func(error)
}

// NewUniqueCleaner returns a role that deletes unique keys that no task holds.
func NewUniqueCleaner(s *store.Store, log *slog.Logger) *PageCleaner[string] {
	return &PageCleaner[string]{s.DropKeys, keepUniques, events{log}.uniquesFailed}
}

// NewPermitCleaner returns a role that deletes permits of limits that no task needs.
func NewPermitCleaner(s *store.Store, log *slog.Logger) *PageCleaner[int64] {
	return &PageCleaner[int64]{s.DropPermits, keepPermits, events{log}.permitsFailed}
}

// Work cleans until ctx ends.
func (c *PageCleaner[At]) Work(ctx context.Context) {
	var after, none At
	wait := roundWait
	for retry.Pause(ctx, wait/2+rand.N(wait)) == nil {
		after, wait = c.clean(ctx, after), pageWait
		if after == none {
			wait = roundWait
		}
	}
}

// clean deletes some rows, and returns the last one that it looked at, or the zero value
// after all.
func (c *PageCleaner[At]) clean(ctx context.Context, after At) (last At) {
	limited, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	last, err := c.drop(limited, after, c.keep)
	if err != nil && ctx.Err() == nil {
		c.failed(err)
	}
	return last
}
