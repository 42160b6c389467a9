package falldue

import (
	"context"
	"sync"
	"time"
)

// lease is a worker's right to run a task for some time. Its end is computed with
// the worker's monotonic clock from a time before the claim was sent. It ends for
// the worker before it ends in the database.
type lease struct {
	mu           sync.Mutex
	until        time.Time
	cancel       context.CancelCauseFunc // cancels the handler's context; nil before it starts
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

// begin sets the function that cancels the handler, and reports whether the
// handler may start. The lease may have ended unnoticed while the process was
// suspended.
func (l *lease) begin(cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
	return !l.lost && time.Now().Before(l.until)
}

// lose marks the lease lost and cancels the handler's context. It does nothing if
// the handler called DoneTx.
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

// settling records that the handler called DoneTx, and reports whether it may
// settle the task.
func (l *lease) settling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maybeSettled = l.maybeSettled || !l.lost
	return !l.lost
}

// state reports whether the lease is lost, and whether the handler may have
// settled the task with DoneTx.
func (l *lease) state() (lost, maybeSettled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.maybeSettled
}
