package falldue

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/store"
)

const (
	// maxPrefetch is the greatest number of claimed tasks that wait for a handler.
	maxPrefetch = 2 * store.MaxBatch
	// prefetchTime is how far ahead a worker claims, at the rate at which its
	// handlers return. It hides the time that a claim takes, and is too short to
	// keep tasks from idle workers.
	prefetchTime = 20 * time.Millisecond
	// rateWindow is the shortest time over which the rate is measured.
	rateWindow = 5 * time.Millisecond
)

// budget decides how many tasks of a queue to claim: one for each free handler, and
// a few more, so that handlers need not wait for the next claim.
type budget struct {
	limit int           // handlers that may run at once
	freed chan struct{} // signalled when there may be room for more tasks

	unfinished atomic.Int64 // tasks that are claimed or being claimed and whose handlers have not returned
	finished   atomic.Int64 // handlers that returned since the rate was last measured

	mu       sync.Mutex
	rate     float64 // handlers that returned per second, a moving average
	measured time.Time
}

func newBudget(limit int) *budget {
	return &budget{limit: limit, freed: make(chan struct{}, 1), measured: time.Now()}
}

// room returns how many tasks to claim now. It is 0 while enough are claimed.
func (b *budget) room() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since := time.Since(b.measured); since > rateWindow {
		now := float64(b.finished.Swap(0)) / since.Seconds()
		b.rate, b.measured = (b.rate+now)/2, time.Now()
	}
	ahead := min(int(b.rate*prefetchTime.Seconds()), maxPrefetch)
	room := b.limit + ahead - int(b.unfinished.Load())
	if room <= ahead/2 {
		return 0
	}
	return min(room, store.MaxBatch)
}

// claiming counts the tasks that a claim may take.
func (b *budget) claiming(n int) { b.unfinished.Add(int64(n)) }

// claimed corrects the count after the claim took n of them.
func (b *budget) claimed(n, of int) {
	b.unfinished.Add(int64(n - of))
	if n < of {
		signal(b.freed) // the other goroutine may wait for the room that the claim did not need
	}
}

// returned counts a handler that returned or will never start.
func (b *budget) returned() {
	b.unfinished.Add(-1)
	b.finished.Add(1)
	signal(b.freed)
}
