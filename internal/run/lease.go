package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/outcome"
)

// lease is a worker's right to run a task for some time. The worker computes its end with a monotonic
// clock from a time before the claim was sent, so that the lease ends for the worker before it ends
// in the database.
type lease struct {
	mu           sync.Mutex
	until        time.Time
	cancel       context.CancelCauseFunc // cancels the handler's context; nil before it starts
	lost         bool
	cancelled    bool // it is lost because the task was cancelled
	calledDoneTx bool // the handler called DoneTx
	maybeSettled bool // and the transaction of DoneTx may have committed
	settled      bool // the transaction of DoneTx has committed

	doneTx      time.Time // when DoneTx returned; zero while it runs
	lockedUntil time.Time // until then the row is locked, so that no other worker can take the task
}

// holds reports whether the lease was still valid at now.
func (l *lease) holds(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.until)
}

// end returns the end of the lease.
func (l *lease) end() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// doneTxGoesOn reports whether the transaction of DoneTx may go on.
func (l *lease) doneTxGoesOn(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.maybeSettled && now.Before(l.lockedUntil)
}

// Extended records that the database has extended the lease, with a statement that was sent at a
// time. A DoneTx that returned before then was rolled back: the row was there, and not locked.
func (l *lease) Extended(sent, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
	if l.maybeSettled && !l.doneTx.IsZero() && sent.After(l.doneTx) {
		l.maybeSettled = false
	}
}

// locked records that the row is locked, perhaps by the transaction of DoneTx.
func (l *lease) locked(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lockedUntil = until
}

// gone records that the claim is no longer in the database. While the lease lasts, no other worker can
// have taken the task. So DoneTx has settled the task, if the handler called it.
func (l *lease) gone() {
	l.mu.Lock()
	l.settled = l.settled || l.maybeSettled && time.Now().Before(l.until)
	l.lockedUntil = time.Time{}
	l.mu.Unlock()
	l.lose()
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
// DoneTx has settled the task, or while the transaction of DoneTx is open.
func (l *lease) lose() { l.loseBy(outcome.ErrLeaseLost) }

// loseBy is lose with another cause for the end of the handler's context.
func (l *lease) loseBy(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost || l.settled || l.maybeSettled && time.Now().Before(l.lockedUntil) {
		return
	}
	l.lost, l.cancelled = true, errors.Is(cause, outcome.ErrCancelled)
	if l.cancel != nil {
		l.cancel(cause)
	}
}

// settling records that the handler called DoneTx, and reports whether it may
// settle the task.
func (l *lease) settling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calledDoneTx, l.maybeSettled, l.doneTx = true, l.maybeSettled || !l.lost, time.Time{}
	return !l.lost
}

// settlingEnded records that DoneTx returned.
func (l *lease) settlingEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doneTx = time.Now()
}

// passTo makes next, which nothing else uses yet, this lease. The lease itself is lost.
func (l *lease) passTo(next *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next.until, next.lost, next.cancelled = l.until, l.lost, l.cancelled
	next.calledDoneTx, next.maybeSettled, next.settled = l.calledDoneTx, l.maybeSettled, l.settled
	next.doneTx, next.lockedUntil = l.doneTx, l.lockedUntil
	l.lost, l.maybeSettled, l.settled = true, false, false
}

// lostBy returns the outcome of a run whose lease is lost.
func (l *lease) lostBy() outcome.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancelled {
		return outcome.Cancelled
	}
	return outcome.Lost
}

// settledByHandler reports whether DoneTx has settled the task, whose claim is gone.
func (l *lease) settledByHandler() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled || l.maybeSettled && time.Now().Before(l.until)
}

// leftToDoneTx reports whether the handler called DoneTx. Then only DoneTx makes the task done.
func (l *lease) leftToDoneTx() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calledDoneTx
}

// state reports whether the lease is lost, and whether the handler may have
// settled the task with DoneTx.
func (l *lease) state() (lost, maybeSettled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.maybeSettled
}
