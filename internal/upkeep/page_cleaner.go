package upkeep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// PageCleaner is a role that deletes unused rows of a table, a page at a time: permits of limits,
// unique keys, or steps. It deletes rows as fast as they are made, without counting them: the more of a page is
// unused, the sooner it reads the next page.
type PageCleaner[At comparable] struct {
	drop   dropPage[At]
	keep   time.Duration
	failed func(error)
}

const (
	// unusedShare is the share of unused rows up to which pages are read as seldom as possible. With ten
	// times that share, pages are read a hundred times as often, up to a tenth of the time.
	unusedShare = 0.01
	// pageWait is the longest time between two pages. A round through the table takes longestRound at
	// most, and shortestRound if many rows are unused.
	pageWait, longestRound, shortestRound = 5 * time.Second, 30 * time.Minute, time.Minute
	// The pause between two rounds is busyRoundWait if rows were made before the last round, and
	// idleRoundWait otherwise.
	busyRoundWait, idleRoundWait = time.Minute, 10 * time.Minute
	// keepPermits and keepUniques are how long unused permits and unique keys are kept.
	keepPermits, keepUniques = 10 * time.Minute, 10 * time.Minute
)

// dropPage reads up to store.MaxBatch rows after a row, and deletes the unused ones. It returns the last
// row that it read, or the zero value at the end of the table, and the number of deleted rows.
type dropPage[At comparable] func(ctx context.Context, after At, keep time.Duration) (last At, dropped int, err error)

// NewUniqueCleaner returns a role that deletes unique keys that no task holds.
func NewUniqueCleaner(dropKeys dropPage[string], log *slog.Logger) *PageCleaner[string] {
	return &PageCleaner[string]{dropKeys, keepUniques, events{log}.uniquesFailed}
}

// NewPermitCleaner returns a role that deletes permits of limits that no task needs.
func NewPermitCleaner(dropPermits dropPage[int64], log *slog.Logger) *PageCleaner[int64] {
	return &PageCleaner[int64]{dropPermits, keepPermits, events{log}.permitsFailed}
}

// NewStepCleaner returns a role that deletes the steps of tasks that are gone.
func NewStepCleaner(dropSteps func(ctx context.Context, after int64) (last int64, dropped int, err error), log *slog.Logger) *PageCleaner[int64] {
	drop := func(ctx context.Context, after int64, _ time.Duration) (int64, int, error) {
		return dropSteps(ctx, after)
	}
	return &PageCleaner[int64]{drop, 0, events{log}.stepsFailed}
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
			if wait = 0; now.pages <= 2*last.pages { // else the table has grown much
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

// round counts the pages and the new rows of a round through the table.
type round struct {
	pages int
	// made estimates how many rows were made since the round before: the deleted rows, and the
	// growth of the table, which will be unused soon.
	made int
}

// sooner shortens a time if many of the rows of so many pages were unused.
func sooner(wait time.Duration, dropped, pages int) time.Duration {
	share := float64(dropped) / float64(max(pages, 1)*store.MaxBatch)
	if share <= unusedShare {
		return wait
	}
	return time.Duration(float64(wait) * (unusedShare / share) * (unusedShare / share))
}

// clean deletes unused rows of a page, and returns the last row of the page, or the zero value at the end
// of the table, and how many rows it has deleted.
func (c *PageCleaner[At]) clean(ctx context.Context, after At) (last At, dropped int) {
	limited, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	last, dropped, err := c.drop(limited, after, c.keep)
	if err != nil && ctx.Err() == nil {
		c.failed(err)
	}
	return last, dropped
}
