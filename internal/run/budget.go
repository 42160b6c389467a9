package run

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/falldue/falldue/internal/store"
)

// MaxPrefetch is the greatest number of claimed tasks that wait for a handler.
const MaxPrefetch = 2 * store.MaxBatch

// Budget decides how many tasks to claim of a queue, or of all queues that match a pattern: one for each free handler,
// and a few ahead, so that handlers need not wait for the next claim.
type Budget struct {
	Limit       int // handlers that may run concurrently
	maxPrefetch int // tasks that may wait for a handler

	unfinished atomic.Int64 // claimed tasks whose handlers have not returned, and the tasks of claims under way
	stalled    atomic.Bool  // tasks waited for handlers in vain, and no handler has returned since

	mu      sync.Mutex
	waiting []chan struct{} // pollers that wait for room, the first one first; each is closed when it has its turn
	freed   bool            // there may be room, and no poller waited for it
}

// NewBudget returns a budget with limit handlers.
func NewBudget(limit, maxPrefetch int) *Budget {
	return &Budget{Limit: limit, maxPrefetch: max(maxPrefetch, 0)}
}

// Room returns how many tasks to claim now: one for each free handler, and up to ahead more. It is 0 while enough are claimed.
func (b *Budget) Room(ahead int) int {
	ahead = min(ahead, b.maxPrefetch)
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
		b.Wake() // another goroutine may wait for this room
	}
}

// Await waits until there may be room, or ctx has ended. Pollers take turns in the order in which they came.
func (b *Budget) Await(ctx context.Context) {
	b.mu.Lock()
	if b.freed {
		b.freed = false
		b.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	b.waiting = append(b.waiting, turn)
	b.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		b.leave(turn)
	}
}

// leave takes a poller out of the line, or passes on its turn.
func (b *Budget) leave(turn chan struct{}) {
	b.mu.Lock()
	at := slices.Index(b.waiting, turn)
	if at >= 0 {
		b.waiting = slices.Delete(b.waiting, at, at+1)
	}
	b.mu.Unlock()
	if at < 0 {
		b.Wake()
	}
}

// Wake gives the first poller that waits its turn.
func (b *Budget) Wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed = len(b.waiting) == 0; !b.freed {
		close(b.waiting[0])
		b.waiting = b.waiting[1:]
	}
}

// PassOn gives the next poller that waits its turn, if a handler is free: the poller before it has not used all room.
func (b *Budget) PassOn() {
	b.mu.Lock()
	others := len(b.waiting) > 0
	b.mu.Unlock()
	if others && b.Free() > 0 {
		b.Wake()
	}
}

// returned counts a handler that returned.
func (b *Budget) returned() {
	b.stalled.Store(false)
	b.unfinished.Add(-1)
	b.Wake()
}

// waitedInVain counts a task that is released because no handler was free for it. Nothing is claimed
// ahead until a handler returns: the running handlers take longer than earlier ones of their kinds.
func (b *Budget) waitedInVain() {
	b.stalled.Store(true)
	b.unfinished.Add(-1)
	b.Wake()
}
