// Package lease keeps the leases of claimed tasks: a worker's right to run a task for some time.
package lease

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
)

// Lease is a worker's right to run a task for some time. The worker computes the end with a monotonic
// clock from a time before the claim was sent. The lease therefore ends for the worker before it ends
// in the database.
type Lease struct {
	Claim *store.Claim
	Queue string

	mu           sync.Mutex
	until        time.Time
	cancel       context.CancelCauseFunc // cancels the handler's context; nil before the handler starts
	lost         bool
	cancelled    bool // the lease is lost because the task was cancelled
	calledDoneTx bool // the handler called DoneTx
	maybeSettled bool // and the transaction of DoneTx may have committed
	settled      bool // the transaction of DoneTx has committed

	doneTx      time.Time // when DoneTx returned; zero while it runs
	lockedUntil time.Time // until then the row is locked, so that no other worker can take the task
}

// New returns the lease of a claim in a queue, which ends at until unless it is extended.
func New(c *store.Claim, queue string, until time.Time) Lease {
	return Lease{Claim: c, Queue: queue, until: until}
}

// byTask orders leases by the IDs of their tasks, and leases of one task by fence.
func byTask(a, b *Lease) int {
	return cmp.Or(cmp.Compare(a.Claim.ID, b.Claim.ID), cmp.Compare(a.Claim.Fence, b.Claim.Fence))
}

// Holds reports whether the lease was still valid at now.
func (l *Lease) Holds(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.until)
}

// end returns the end of the lease.
func (l *Lease) end() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// doneTxGoesOn reports whether the transaction of DoneTx may still be open.
func (l *Lease) doneTxGoesOn(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.maybeSettled && now.Before(l.lockedUntil)
}

// Extended records that a statement sent at a time has extended the lease. A DoneTx that returned before
// was rolled back: the row was there, and not locked.
func (l *Lease) Extended(sent, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
	if l.maybeSettled && !l.doneTx.IsZero() && sent.After(l.doneTx) {
		l.maybeSettled = false
	}
}

// locked records that the row is locked, perhaps by the transaction of DoneTx.
func (l *Lease) locked(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lockedUntil = until
}

// Gone records that the claim is no longer in the database. While the lease lasts, no other worker can
// have taken the task. So DoneTx has settled the task, if the handler called it.
func (l *Lease) Gone() {
	l.mu.Lock()
	l.settled = l.settled || l.maybeSettled && time.Now().Before(l.until)
	l.lockedUntil = time.Time{}
	l.mu.Unlock()
	l.Lose()
}

// Begin sets the function that cancels the handler, and reports whether the
// handler may start now. The lease may have ended unnoticed while the process was
// suspended.
func (l *Lease) Begin(cancel context.CancelCauseFunc, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
	return !l.lost && now.Before(l.until)
}

// Lose marks the lease lost and cancels the handler's context. It does nothing if
// DoneTx has settled the task, or while the transaction of DoneTx is open.
func (l *Lease) Lose() { l.loseBy(outcome.ErrLeaseLost) }

// loseBy is Lose with another cause for the end of the handler's context.
func (l *Lease) loseBy(cause error) {
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

// Settling records that the handler called DoneTx, and reports whether it may
// settle the task.
func (l *Lease) Settling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calledDoneTx, l.maybeSettled, l.doneTx = true, l.maybeSettled || !l.lost, time.Time{}
	return !l.lost
}

// SettlingEnded records that DoneTx returned.
func (l *Lease) SettlingEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doneTx = time.Now()
}

// passTo moves the state of the lease to next, which nothing else uses yet. The lease is lost then.
func (l *Lease) passTo(next *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next.until, next.lost, next.cancelled = l.until, l.lost, l.cancelled
	next.calledDoneTx, next.maybeSettled, next.settled = l.calledDoneTx, l.maybeSettled, l.settled
	next.doneTx, next.lockedUntil = l.doneTx, l.lockedUntil
	l.lost, l.maybeSettled, l.settled = true, false, false
}

// LostBy returns the outcome of a run whose lease is lost.
func (l *Lease) LostBy() outcome.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancelled {
		return outcome.Cancelled
	}
	return outcome.Lost
}

// SettledByHandler reports whether DoneTx has settled the task of a claim that is gone.
func (l *Lease) SettledByHandler() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled || l.maybeSettled && time.Now().Before(l.until)
}

// ReallyLost returns what a statement has left, without the lost tasks that DoneTx has settled.
func ReallyLost(left store.Unsettled, leases []*Lease) store.Unsettled {
	if len(left.Lost) == 0 {
		return left
	}
	settled := map[int64]bool{}
	for _, l := range leases {
		settled[l.Claim.ID] = l.SettledByHandler()
	}
	left.Lost = slices.DeleteFunc(slices.Clone(left.Lost), func(id int64) bool { return settled[id] })
	return left
}

// LeftToDoneTx reports whether the handler called DoneTx. Then only DoneTx makes the task done.
func (l *Lease) LeftToDoneTx() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calledDoneTx
}

// State reports whether the lease is lost, and whether the handler may have
// settled the task with DoneTx.
func (l *Lease) State() (lost, maybeSettled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.maybeSettled
}
