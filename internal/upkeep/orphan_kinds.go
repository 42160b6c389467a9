package upkeep

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// orphanWait is how long no worker must have handled a kind before other workers delete its finished tasks.
// A deploy that stops all workers before it starts new ones takes less time.
const orphanWait = time.Hour

// orphanKinds decides for which kinds without a handler a worker may delete finished tasks: the
// kinds that no worker handles. A worker that handles a kind knows how long the kind's tasks are
// kept. It announces the kind, but not that time.
type orphanKinds struct {
	workers workersTable

	asked bool            // in this round
	kinds map[string]bool // the kinds that workers handle, as this round has read them, or nil
	// since has, by kind, the time of the first of the last rounds that found no worker for the kind.
	// This round writes next, which then becomes since.
	since, next map[string]time.Time
}

// workersTable has the kinds that workers handle.
type workersTable interface {
	AnnouncedKinds(context.Context) (map[string]bool, error)
}

// begin begins a round of the cleaner.
func (f *orphanKinds) begin() {
	f.asked, f.kinds = false, nil
	f.since, f.next = f.next, map[string]time.Time{}
}

// deletable reports whether finished tasks of a kind without a handler may be deleted. It reads the
// kinds of workers once in a round, and not in rounds without such tasks. If the kinds cannot be
// read, nothing is deleted, and the first call of the round returns the error.
func (f *orphanKinds) deletable(ctx context.Context, kind string) (_ bool, err error) {
	if !f.asked {
		f.asked = true
		ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
		defer cancel()
		f.kinds, err = f.workers.AnnouncedKinds(ctx)
	}
	if f.kinds == nil || f.kinds[kind] {
		return false, err
	}
	since, known := f.since[kind]
	if !known {
		since = time.Now()
	}
	f.next[kind] = since
	return time.Since(since) >= orphanWait, nil
}
