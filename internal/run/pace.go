package run

import (
	"sync/atomic"
	"time"
)

const (
	// A worker claims ahead as many tasks as its handlers finish in claimsAhead times the time
	// that a claim takes, so that handlers do not wait for a claim: a poller claims when half of these
	// tasks have started. minAhead and maxAhead bound this time.
	claimsAhead = 3
	minAhead    = 20 * time.Millisecond
	maxAhead    = 250 * time.Millisecond
	// meanWeight is about the number of recent times over which a Mean is the mean.
	meanWeight = 16
	// pacePause is how long nothing is claimed ahead after tasks had fewer attempts left
	// than their policy allows.
	pacePause = time.Minute
)

// Mean is the mean of recent times. It does not matter that two times that are recorded at the same moment
// may overwrite each other.
type Mean struct{ nanoseconds atomic.Int64 } // 0 until there is a time

// Record records a time.
func (m *Mean) Record(took time.Duration) {
	mean := m.nanoseconds.Load()
	if mean == 0 {
		mean = int64(took)
	}
	m.nanoseconds.Store(max(mean+(int64(took)-mean)/meanWeight, 1))
}

// Of returns the mean, or 0 if no time was recorded.
func (m *Mean) Of() time.Duration { return time.Duration(m.nanoseconds.Load()) }

// pace is how long the handlers of a kind take.
type pace struct {
	Mean
	paused atomic.Pointer[time.Time] // until when nothing is claimed ahead
}

// pause makes Ahead return 0 for a while.
func (p *pace) pause() {
	until := time.Now().Add(pacePause)
	p.paused.Store(&until)
}

// Ahead returns how many tasks a number of handlers should claim ahead if a claim takes the given time. It
// is 0 until a handler has returned.
func (p *pace) Ahead(handlers int, claim time.Duration) int {
	mean := p.Of()
	if until := p.paused.Load(); mean == 0 || until != nil && time.Now().Before(*until) {
		return 0
	}
	return int(time.Duration(handlers) * min(max(claimsAhead*claim, minAhead), maxAhead) / mean)
}
