package run

import (
	"sync/atomic"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// MaxPrefetch is the greatest number of claimed tasks that wait for a handler.
const MaxPrefetch = 2 * store.MaxBatch

// Budget decides how many tasks of a queue to claim: one for each free handler, and a few ahead, so
// that handlers need not wait for the next claim.
type Budget struct {
	Limit       int           // handlers that may run concurrently
	maxPrefetch int           // tasks that may wait for a handler
	Freed       chan struct{} // signalled when there may be room for more tasks

	unfinished atomic.Int64 // claimed tasks whose handlers have not returned, and the tasks of claims under way
	ahead      atomic.Int64 // tasks to claim ahead, in addition to one for each free handler
	stalled    atomic.Bool  // tasks waited for handlers in vain, and no handler has returned since
}

// NewBudget returns a budget of a queue with limit handlers.
func NewBudget(limit, maxPrefetch int) *Budget {
	return &Budget{Limit: limit, maxPrefetch: max(maxPrefetch, 0), Freed: make(chan struct{}, 1)}
}

// Prefetch sets how many tasks to claim ahead.
func (b *Budget) Prefetch(n int) { b.ahead.Store(int64(min(n, b.maxPrefetch))) }

// Room returns how many tasks to claim now. It is 0 while enough are claimed.
func (b *Budget) Room() int {
	ahead := int(b.ahead.Load())
	if b.stalled.Load() {
		ahead = 0
	}
	room := b.Free() + ahead
	if room <= ahead/2 {
		return 0
	}
	return min(room, store.MaxBatch)
}

// Free returns how many handlers are free. It is negative if tasks wait for handlers.
func (b *Budget) Free() int { return b.Limit - int(b.unfinished.Load()) }

// Claiming counts the tasks that a claim may take.
func (b *Budget) Claiming(n int) { b.unfinished.Add(int64(n)) }

// Claimed corrects the count after the claim took n of the tasks that were passed to Claiming.
func (b *Budget) Claimed(n, of int) {
	b.unfinished.Add(int64(n - of))
	if n < of {
		retry.Signal(b.Freed) // the poller's other goroutine may wait for this room
	}
}

// returned counts a handler that returned.
func (b *Budget) returned() {
	b.stalled.Store(false)
	b.unfinished.Add(-1)
	retry.Signal(b.Freed)
}

// waitedInVain counts a task that is released because no handler was free for it. Nothing is claimed
// ahead until a handler returns: the running handlers take longer than earlier ones of their kinds.
func (b *Budget) waitedInVain() {
	b.stalled.Store(true)
	b.unfinished.Add(-1)
	retry.Signal(b.Freed)
}
