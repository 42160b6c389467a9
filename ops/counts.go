package ops

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// Count is the number of tasks of a queue and kind that are in a state.
type Count struct {
	Queue, Kind string
	State       falldue.State
	Tasks       int64
	// Estimated reports whether Tasks is an estimate, see [Ops.EstimateCounts].
	Estimated bool
}

// Counts returns the number of tasks of each queue, kind and state. It reads a
// whole index of the table, or on PostgreSQL the whole table.
func (o *Ops) Counts(ctx context.Context) ([]Count, error) {
	rows, err := o.store.Counts(ctx)
	return countsOf(rows), err
}

// EstimateCounts returns approximately what [Ops.Counts] returns, in a time that does not grow with the number of
// tasks. Small numbers are exact: [Count].Estimated reports which numbers are estimates. PostgreSQL counts the tasks in
// a sample of the table's pages, MySQL and MariaDB estimate how many entries parts of the index have, and SQLite and
// TiDB count the tasks in ranges of IDs. With more than 1,000 lanes, MySQL and MariaDB also count in ranges of IDs, and
// a group of few tasks may be missing.
//
// An Ops remembers the numbers for ten times as long as it took to compute them.
func (o *Ops) EstimateCounts(ctx context.Context) ([]Count, error) {
	return o.estimates.get(ctx, o.store.EstimateCounts)
}

// estimates remembers counts.
type estimates struct {
	mu     sync.Mutex
	counts []Count
	until  time.Time
}

// estimatesShare limits the time in which a process counts to a tenth.
const estimatesShare = 10

func (e *estimates) get(ctx context.Context, read func(context.Context) ([]store.Count, error)) ([]Count, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.until) {
		return slices.Clone(e.counts), nil
	}
	start := time.Now()
	rows, err := read(ctx)
	if err != nil {
		return nil, err
	}
	e.counts, e.until = countsOf(rows), time.Now().Add(estimatesShare*time.Since(start))
	return slices.Clone(e.counts), nil
}

func countsOf(rows []store.Count) []Count {
	list := make([]Count, len(rows))
	for i, c := range rows {
		list[i] = Count{Queue: c.Queue, Kind: c.Kind, State: falldue.State(c.State), Tasks: c.Tasks, Estimated: c.Estimated}
	}
	return list
}
