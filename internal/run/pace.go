package run

import (
	"sync/atomic"
	"time"
)

const (
	// prefetchTime is how far ahead a worker claims: as many tasks as its handlers
	// finish in this time, so that handlers do not wait for a claim.
	prefetchTime = 20 * time.Millisecond
	// paceWeight is about the number of recent handlers over which a pace is the mean.
	paceWeight = 16
	// pacePause is how long nothing is claimed ahead after tasks had fewer attempts left
	// than their policy allows.
	pacePause = time.Minute
)

// pace is how long the handlers of a kind take. It does not matter that handlers that return at the same
// moment may overwrite each other's times.
type pace struct {
	mean   atomic.Int64              // nanoseconds, of recent handlers; 0 until one has returned
	paused atomic.Pointer[time.Time] // until when nothing is claimed ahead
}

// record records how long a handler took.
func (p *pace) record(took time.Duration) {
	mean := p.mean.Load()
	if mean == 0 {
		mean = int64(took)
	}
	p.mean.Store(max(mean+(int64(took)-mean)/paceWeight, 1))
}

// pause makes Ahead return 0 for a while.
func (p *pace) pause() {
	until := time.Now().Add(pacePause)
	p.paused.Store(&until)
}

// Ahead returns how many tasks a number of handlers finish in prefetchTime. It is 0
// until a handler has returned.
func (p *pace) Ahead(handlers int) int {
	mean := p.mean.Load()
	if until := p.paused.Load(); mean == 0 || until != nil && time.Now().Before(*until) {
		return 0
	}
	return int(int64(handlers) * int64(prefetchTime) / mean)
}
