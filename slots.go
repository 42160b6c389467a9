package falldue

import (
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/store"
)

const (
	// slotSize is how many tasks a claim must have found for the next ones to need
	// a claim slot, of a worker that may have as many at once. The claims of smaller
	// workers are too short to disturb each other, and where a commit takes long
	// they gain from running side by side.
	slotSize = store.MaxBatch / 4
	// Between two tries of a claim that found no free slot a poller waits for
	// minSlotWait, doubled with each try up to maxSlotWait. Who waits longer
	// disturbs less, and then claims several times in a row.
	minSlotWait = 4 * time.Millisecond
	maxSlotWait = 160 * time.Millisecond
	// slotPatience is how long a poller waits for a slot before it claims without
	// one: whoever holds it may be gone.
	slotPatience = time.Second
)

// slotWaiter decides whether a poller's next claim needs a claim slot, and how
// long to wait for one. The poller's loop alone uses it.
type slotWaiter struct {
	deep  bool      // a claim found many tasks, and none since found less than it asked for
	since time.Time // of the first try without a slot since the last claim
	wait  time.Duration
}

// needed reports whether the next claim of a worker that may have up to limit
// tasks at once needs a slot. A small claim that waits for its slot has become a
// larger one when it gets it: where workers disturb each other, the number of
// claims is what costs.
func (q *slotWaiter) needed(limit int) bool {
	return q.deep && limit >= slotSize && (q.since.IsZero() || time.Since(q.since) < slotPatience)
}

// refused returns how long to wait after a try that found no free slot.
func (q *slotWaiter) refused() time.Duration {
	if q.since.IsZero() {
		q.since = time.Now()
	}
	q.wait = min(max(2*q.wait, minSlotWait), maxSlotWait)
	return q.wait/2 + rand.N(q.wait/2)
}

// claimed notes that a claim for up to limit tasks found n.
func (q *slotWaiter) claimed(n, limit int) {
	q.deep = n >= slotSize || q.deep && n == limit
	q.since, q.wait = time.Time{}, q.wait/2
}
