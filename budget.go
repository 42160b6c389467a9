package falldue

import (
	"sync/atomic"

	"github.com/falldue/falldue/internal/store"
)

// maxPrefetch is the greatest number of claimed tasks that wait for a handler.
const maxPrefetch = 2 * store.MaxBatch

// budget decides how many tasks of a queue to claim: one for each free handler, and
// a few more, so that handlers need not wait for the next claim.
type budget struct {
	limit       int           // handlers that may run at once
	maxPrefetch int           // tasks that may wait for a handler
	freed       chan struct{} // signalled when there may be room for more tasks

	unfinished atomic.Int64 // tasks that are claimed or being claimed and whose handlers have not returned
	ahead      atomic.Int64 // tasks to claim beside those for free handlers
	stalled    atomic.Bool  // tasks waited in vain, and no handler has returned since
}

func newBudget(limit, maxPrefetch int) *budget {
	return &budget{limit: limit, maxPrefetch: max(maxPrefetch, 0), freed: make(chan struct{}, 1)}
}

// prefetch sets how many tasks to claim ahead.
func (b *budget) prefetch(n int) { b.ahead.Store(int64(min(n, b.maxPrefetch))) }

// room returns how many tasks to claim now. It is 0 while enough are claimed.
func (b *budget) room() int {
	ahead := int(b.ahead.Load())
	if b.stalled.Load() {
		ahead = 0
	}
	room := b.free() + ahead
	if room <= ahead/2 {
		return 0
	}
	return min(room, store.MaxBatch)
}

// free returns how many handlers are free. It is negative if tasks wait for handlers.
func (b *budget) free() int { return b.limit - int(b.unfinished.Load()) }

// claiming counts the tasks that a claim may take.
func (b *budget) claiming(n int) { b.unfinished.Add(int64(n)) }

// claimed corrects the count after the claim took n of them.
func (b *budget) claimed(n, of int) {
	b.unfinished.Add(int64(n - of))
	if n < of {
		signal(b.freed) // the other goroutine may wait for the room that the claim did not need
	}
}

// returned counts a handler that returned.
func (b *budget) returned() {
	b.stalled.Store(false)
	b.unfinished.Add(-1)
	signal(b.freed)
}

// waitedInVain counts a task that is given back since no handler was free for it.
// Nothing is claimed ahead until a handler returns: those that run take longer than
// their kinds did before.
func (b *budget) waitedInVain() {
	b.stalled.Store(true)
	b.unfinished.Add(-1)
	signal(b.freed)
}
