package falldue

import (
	"context"
	"sync"
	"time"
)

// lease is what a worker knows of its right to run a task. It counts by the
// worker's monotonic clock from the moment before the claim was sent, so that it
// is over for the worker before it is for the database.
type lease struct {
	mu           sync.Mutex
	until        time.Time
	cancel       context.CancelCauseFunc // of the handler's context, while it runs
	lost         bool
	maybeSettled bool // DoneTx was called
}

// holds reports whether the lease was still valid at now.
func (l *lease) holds(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.until)
}

// extend sets the end of the lease.
func (l *lease) extend(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
}

// begin notes how to cancel the handler that is about to start, and reports
// whether it may: a process that stood still may come here before it learns that
// the lease is lost.
func (l *lease) begin(cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
	return !l.lost && time.Now().Before(l.until)
}

// lose notes that the lease is lost and ends the handler's context, unless the
// handler settled the task itself.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.maybeSettled || l.lost {
		return
	}
	l.lost = true
	if l.cancel != nil {
		l.cancel(ErrLeaseLost)
	}
}

// settling notes that the handler is about to settle the task itself, and reports
// whether it may.
func (l *lease) settling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maybeSettled = l.maybeSettled || !l.lost
	return !l.lost
}

// state reports whether the lease is lost, and whether the handler may have
// settled the task itself.
func (l *lease) state() (lost, maybeSettled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.maybeSettled
}
