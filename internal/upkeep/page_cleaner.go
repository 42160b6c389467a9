package upkeep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// PageCleaner is a role that deletes what is no longer needed of a table, some rows at a
// time: the permits of limits, of keys that have no tasks for example, or unique keys. It
// deletes as many as are made, without knowing how many those are: the more of the rows are of no use
// where it looks, the sooner it looks at the next ones.
type PageCleaner[At comparable] struct {
	// drop looks at up to store.MaxBatch rows after one, and returns the last one, or the zero value after
	// all rows, and how many it has deleted.
	drop   func(ctx context.Context, after At, keep time.Duration) (last At, dropped int, err error)
	keep   time.Duration
	failed func(error)
}

const (
	// unusedShare is the share of rows of no use up to which looks are as seldom as they may. With ten
	// times that share they are a hundred times as frequent, up to a tenth of the time.
	unusedShare = 0.01
	// pageWait is the longest time between two looks at some rows. Looks at all of them take
	// longestRound at most if they find nothing, and shortestRound if much of the table is of no use.
	pageWait, longestRound, shortestRound = 5 * time.Second, 30 * time.Minute, time.Minute
	// Between looks at all rows is busyRoundWait if rows were made before the last ones, and else
	// idleRoundWait.
	busyRoundWait, idleRoundWait = time.Minute, 10 * time.Minute
	// keepPermits and keepUniques are how long permits and unique keys are kept that
	// nobody has.
	keepPermits, keepUniques = 10 * time.Minute, 10 * time.Minute
)

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
	var last, now round
	for wait := busyRoundWait; retry.Pause(ctx, wait/2+rand.N(wait)) == nil; {
		start := time.Now()
		var dropped int
		after, dropped = c.clean(ctx, after)
		now.pages, now.made = now.pages+1, now.made+dropped
		if after != none {
			if wait = 0; now.pages <= 2*last.pages { // else there are many more than were known
				target := max(sooner(longestRound, last.made, last.pages), shortestRound)
				wait = sooner(min(pageWait, target/time.Duration(max(last.pages, now.pages))), dropped, 1)
			}
			wait = max(wait, findPauseFactor*time.Since(start), time.Millisecond)
			continue
		}
		if last.pages > 0 {
			now.made += max(now.pages-last.pages, 0) * store.MaxBatch
		}
		if wait = idleRoundWait; now.made > 0 {
			wait = busyRoundWait
		}
		last, now = now, round{}
	}
}

// round is what looks at all rows have found.
type round struct {
	pages int
	// made is how many rows have been made since the round before, as far as is known: those
	// that were deleted, and those that there are more of. The latter will be of no use soon.
	made int
}

// sooner returns how long to wait, or to take, instead of a time if so many rows of so many pages
// were of no use.
func sooner(wait time.Duration, dropped, pages int) time.Duration {
	share := float64(dropped) / float64(max(pages, 1)*store.MaxBatch)
	if share <= unusedShare {
		return wait
	}
	return time.Duration(float64(wait) * (unusedShare / share) * (unusedShare / share))
}

// clean deletes some rows, and returns the last one that it looked at, or the zero value
// after all, and how many it has deleted.
func (c *PageCleaner[At]) clean(ctx context.Context, after At) (last At, dropped int) {
	limited, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	last, dropped, err := c.drop(limited, after, c.keep)
	if err != nil && ctx.Err() == nil {
		c.failed(err)
	}
	return last, dropped
}
