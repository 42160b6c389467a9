package falldue

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/store"
)

const (
	// maxAhead bounds the tasks that wait in memory for a handler.
	maxAhead = 2 * store.MaxBatch
	// aheadFor is for how long a worker claims ahead, at the rate at which its
	// handlers return: enough to hide a claim, not enough to keep tasks from
	// workers that are idle.
	aheadFor = 20 * time.Millisecond
	// rateWindow is the least time over which the rate is measured.
	rateWindow = 5 * time.Millisecond
)

// meter says how many tasks of a queue to claim: as many as handlers are free,
// and a few ahead.
type meter struct {
	limit int // handlers at once

	unfinished atomic.Int64 // claimed or being claimed, and their handlers have not returned
	finished   atomic.Int64 // handlers that returned since the rate was last measured

	mu       sync.Mutex
	rate     float64 // handlers that returned each second, of late
	measured time.Time
}

func newMeter(limit int) *meter { return &meter{limit: limit, measured: time.Now()} }

// room is how many tasks to claim now: 0 while enough are at hand.
func (m *meter) room() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since := time.Since(m.measured); since > rateWindow {
		now := float64(m.finished.Swap(0)) / since.Seconds()
		m.rate, m.measured = (m.rate+now)/2, time.Now()
	}
	ahead := min(int(m.rate*aheadFor.Seconds()), maxAhead)
	room := m.limit + ahead - int(m.unfinished.Load())
	if room <= ahead/2 {
		return 0
	}
	return min(room, store.MaxBatch)
}

// claiming counts the tasks that a claim may take.
func (m *meter) claiming(n int) { m.unfinished.Add(int64(n)) }

// claimed corrects that count once the claim took n of them.
func (m *meter) claimed(n, of int) { m.unfinished.Add(int64(n - of)) }

// returned counts a handler that returned, or that will never start.
func (m *meter) returned() {
	m.unfinished.Add(-1)
	m.finished.Add(1)
}
