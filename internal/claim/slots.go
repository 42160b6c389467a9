package claim

import (
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/store"
)

const (
	// slotThreshold is the number of tasks from which a claim is large. After a large
	// claim, the next ones need a claim slot if the worker may run that many tasks
	// concurrently. The claims of smaller workers are too short to disturb each other, and
	// gain from running in parallel where a commit takes long.
	slotThreshold = store.MaxBatch / 4
	// A poller that finds no free slot waits for minSlotWait, doubled with each try
	// up to maxSlotWait. The longer other pollers wait, the more claims the holder of a
	// slot makes undisturbed.
	minSlotWait = 4 * time.Millisecond
	maxSlotWait = 160 * time.Millisecond
	// MaxSlotPatience is how long a poller waits for a slot before it claims without one. The processes that hold the
	// slots may be suspended, so it waits half as long after each claim without a slot, down to a second, and twice
	// as long after each slot. Among many busy processes slots come seldom, and claims without a slot would
	// disturb all others.
	MaxSlotPatience = 8 * time.Second
	maxHurry        = 3
)

// slotWaiter decides whether a poller's next claim needs a claim slot, and how long
// to wait for one. Only the poller's loop uses it.
type slotWaiter struct {
	backlog bool      // a claim was large, and each claim since then has found as many tasks as it requested
	since   time.Time // when the poller began to wait for a slot, or zero
	wait    time.Duration
	hurry   int // how many times the patience is halved, up to maxHurry
}

// needed reports whether the next claim of a worker with up to limit tasks needs a slot. Small claims need
// a slot, too. By the time they get one they have become larger, and where workers disturb each other,
// fewer claims cost less.
func (w *slotWaiter) needed(limit int) bool {
	return w.backlog && limit >= slotThreshold && !w.impatient()
}

// impatient reports whether the poller has waited for a slot long enough.
func (w *slotWaiter) impatient() bool {
	return !w.since.IsZero() && time.Since(w.since) >= MaxSlotPatience>>w.hurry
}

// refused returns how long to wait after a try that found no free slot.
func (w *slotWaiter) refused() time.Duration {
	if w.since.IsZero() {
		w.since = time.Now()
	}
	w.wait = min(max(2*w.wait, minSlotWait), maxSlotWait)
	return w.wait/2 + rand.N(w.wait/2)
}

// Claimed records that a claim of up to limit tasks found n tasks.
func (w *slotWaiter) Claimed(n, limit int) {
	switch {
	case w.impatient():
		w.hurry = min(w.hurry+1, maxHurry)
	case !w.since.IsZero():
		w.hurry = max(w.hurry-1, 0)
	}
	w.backlog = n >= slotThreshold || w.backlog && n == limit
	w.since, w.wait = time.Time{}, w.wait/2
}
