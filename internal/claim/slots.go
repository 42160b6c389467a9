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
	// up to maxSlotWait. So it waits at most about twice as long as the slots were taken.
	// The longer other pollers wait, the more claims the holder of a slot makes undisturbed.
	// Each try wakes a process and a session of the database. With a maxSlotWait of 160
	// milliseconds, 32 busy processes are about a quarter slower.
	minSlotWait = 4 * time.Millisecond
	maxSlotWait = 1280 * time.Millisecond
	// SlotPatience is how long a poller waits for a slot before it asks who holds the slots. Then it waits as long
	// again, and asks again. If the answers are equal, the holders may be suspended, and the poller claims without a
	// slot. Among many busy processes slots come seldom but change hands, and claims without a slot would disturb
	// all others.
	SlotPatience = 2 * time.Second
)

// slotWaiter decides whether a poller's next claim needs a claim slot, and how long
// to wait for one. Only the poller's loop uses it.
type slotWaiter struct {
	backlog bool      // a claim was large, and each claim since then has found as many tasks as it requested
	since   time.Time // when the poller began to wait for a slot, or last asked for the holders, or zero
	wait    time.Duration
	holders string // the last answer in this wait, or ""
}

// needed reports whether the next claim of a worker with up to limit tasks needs a slot. Small claims need
// a slot, too. By the time they get one they have become larger, and where workers disturb each other,
// fewer claims cost less.
func (w *slotWaiter) needed(limit int) bool { return w.backlog && limit >= slotThreshold }

// impatient reports whether the poller has waited long enough to ask who holds the slots.
func (w *slotWaiter) impatient() bool {
	return !w.since.IsZero() && time.Since(w.since) >= SlotPatience
}

// changeHands records the holders of the slots, and reports whether the slots have become free or changed hands
// since the record before.
func (w *slotWaiter) changeHands(holders string) bool {
	changed := holders == "" || holders != w.holders
	w.holders, w.since = holders, time.Now()
	return changed
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
	w.backlog = n >= slotThreshold || w.backlog && n == limit
	w.since, w.wait, w.holders = time.Time{}, w.wait/2, ""
}
