package upkeep

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// foreignWait is how long no worker must be known that handles a kind before workers that do not
// handle it delete its finished tasks. A deploy takes less, in which workers end before others
// start, and all of them may start before one has announced itself.
const foreignWait = time.Hour

// orphanKinds says of which kinds that a worker does not handle it may delete finished tasks: of
// those that nobody handles. A worker that handles a kind knows how long its tasks are kept, and
// announces the kind and not for how long.
type orphanKinds struct {
	// announced returns the kinds that workers handle.
	announced func(context.Context) (map[string]bool, error)

	asked bool            // in this round
	kinds map[string]bool // what announced has returned in this round, or nil if it failed
	// since has the kinds that may lose tasks when a round looked, since when all rounds have
	// found that no worker handles them, and next the same as this round finds it.
	since, next map[string]time.Time
}

// begin begins a round of the cleaner.
func (f *orphanKinds) begin() {
	f.asked, f.kinds = false, nil
	f.since, f.next = f.next, map[string]time.Time{}
}

// deletable reports whether finished tasks of a kind may be deleted although the worker does not
// handle it. It asks for the kinds of workers once in a round, and not in rounds that have no such
// tasks. If they cannot be read, nothing is deleted, and the first call of the round returns why.
func (f *orphanKinds) deletable(ctx context.Context, kind string) (_ bool, err error) {
	if !f.asked {
		f.asked = true
		ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
		defer cancel()
		f.kinds, err = f.announced(ctx)
	}
	if f.kinds == nil || f.kinds[kind] {
		return false, err
	}
	since, known := f.since[kind]
	if !known {
		since = time.Now()
	}
	f.next[kind] = since
	return time.Since(since) >= foreignWait, nil
}
