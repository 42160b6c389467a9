package lease

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// Extender extends the leases of a worker every third of their length, and sooner after a failure.
// Alongside, it checks with the monotonic clock whether a lease has expired: a worker that could not
// reach the database, or was suspended, may have lost its tasks. An extension that hangs does not
// hold up these checks.
type Extender struct {
	*Set
	workerID string
	length   time.Duration // of a lease
	events   events
	observer Observer
	table    table
	changes  changeReader // finds cancelled tasks and ends their runs; nil if tasks are not cancelled
}

// Observer is told of statements that extend leases.
type Observer interface {
	// Extended is told how many leases a statement extends, and which are left. The error comes from
	// the database.
	Extended(tasks int, left store.Unsettled, start time.Time, err error)
}

// table has the statements of an Extender.
type table interface {
	Extend(ctx context.Context, workerID string, length time.Duration, claims []store.Key) (store.Unsettled, error)
	// ExtendLive extends leases of claims under limits. A lease that has expired stays expired.
	ExtendLive(ctx context.Context, workerID string, length time.Duration, claims []store.Key) (store.Unsettled, error)
	// FreePermits frees the permits of claims that were ended from outside.
	FreePermits(context.Context, []*store.Claim) error
	Classify(error) dialect.Class
}

// changeReader reads cancels, pauses and overrides, and applies them.
type changeReader interface {
	Read(context.Context) error
}

// NewExtender returns an extender of the leases in a set. changes finds cancelled tasks, and may be nil.
func NewExtender(workerID string, length time.Duration, leases *Set, table table, changes changeReader, observer Observer, log *slog.Logger) *Extender {
	return &Extender{Set: leases, workerID: workerID, length: length, events: events{log}, observer: observer, table: table, changes: changes}
}

// Work extends and watches the leases until ctx ends.
func (e *Extender) Work(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { e.watch(ctx) })
	defer watching.Wait()
	due := time.NewTimer(e.length / 3)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		begun := time.Now()
		// In the order of IDs, so that two workers do not deadlock.
		limited, others := parted(e.latest(e.Sorted()))
		lost, complete := e.extendAll(ctx, limited)
		more, completeToo := e.extendAll(ctx, others)
		e.Gone(ctx, append(lost, more...)...)
		next := e.length / 3
		if !complete || !completeToo {
			next = e.length / 12 // a lost connection must not cost a third of the lease
		}
		due.Reset(next - time.Since(begun))
	}
}

// watch marks leases lost as soon as they have expired, until ctx ends.
func (e *Extender) watch(ctx context.Context) {
	for ctx.Err() == nil {
		now := time.Now()
		next := now.Add(e.length / 4) // the lease of a claim under way ends later
		for _, l := range e.list() {
			switch end := l.end(); {
			case !now.Before(end):
				e.lose(l)
			case end.Before(next):
				next = end
			}
		}
		_ = retry.Pause(ctx, max(time.Until(next), minWatch))
	}
}

// minWatch is the shortest time between two checks of all leases.
const minWatch = 10 * time.Millisecond

// latest removes from a sorted list the earlier leases of a task that this worker
// has claimed again. The earlier leases are lost.
func (e *Extender) latest(list []*Lease) []*Lease {
	kept := list[:0]
	for i, l := range list {
		if i+1 < len(list) && list[i+1].Claim.ID == l.Claim.ID {
			e.lose(l)
			continue
		}
		kept = append(kept, l)
	}
	return kept
}

// parted returns the leases of claims under limits, and the other leases.
func parted(list []*Lease) (limited, others []*Lease) {
	for _, l := range list {
		if len(l.Claim.Limits) > 0 {
			limited = append(limited, l)
		} else {
			others = append(others, l)
		}
	}
	return limited, others
}

// extendAll extends the leases of a list in batches. When the database refuses to extend one of them,
// or hangs because of one, the others are extended without it. When the database does not answer, or
// seems to refuse all, the rest waits for the next call, and extendAll is not complete. It returns the
// leases of claims that are gone.
func (e *Extender) extendAll(ctx context.Context, list []*Lease) (lost []*Lease, complete bool) {
	batchSize, limit := retry.NewBatchSize(), e.extendTimeout()
	for len(list) > 0 {
		n := min(len(list), batchSize.Size)
		left, late, err := e.extend(ctx, list[:n], limit)
		if err == nil {
			lost = append(lost, left...)
			batchSize.Accepted()
			list = list[n:]
			continue
		}
		failure, _ := batchSize.Failed(n, e.table.Classify(err), late)
		if late && batchSize.Failures > maxHangs || failure == retry.Outage || failure == retry.Unclear && batchSize.Failures > retry.FailuresBeforePause {
			e.events.extendFailed(len(list), err)
			return lost, false
		}
		if n == 1 {
			e.events.extendRefused(list[0].Claim, err)
			list = list[1:]
		} else if late { // the tasks that may be to blame come last
			list = slices.Concat(list[n:], list[:n])
			limit = min(limit, e.length/hungTimeoutDivisor)
		}
	}
	return lost, true
}

// extendTimeout is the longest time for a statement that extends leases.
func (e *Extender) extendTimeout() time.Duration { return min(e.length/3, retry.StatementTimeout) }

const (
	// maxHangs is how many statements in a row may hang before the database seems to be
	// unavailable: enough to find one task among MaxBatch.
	maxHangs = 4
	// hungTimeoutDivisor limits statements after a hanging one to this fraction of a lease.
	hungTimeoutDivisor = 60
)

// extend extends the leases of a batch within a time. It returns the leases of claims that are
// gone, and reports whether the statement timed out.
func (e *Extender) extend(ctx context.Context, batch []*Lease, limit time.Duration) (lost []*Lease, late bool, err error) {
	now := time.Now()
	live, claims := make([]*Lease, 0, len(batch)), make([]store.Key, 0, len(batch))
	for _, l := range batch {
		if !l.Holds(now) && !l.doneTxGoesOn(now) {
			e.lose(l)
			continue
		}
		live, claims = append(live, l), append(claims, store.Key{TaskID: l.Claim.ID, Fence: l.Claim.Fence})
	}
	if len(live) == 0 {
		return nil, false, nil
	}
	ctx, cancel := retry.StatementContext(ctx, limit)
	defer cancel()
	extend := e.table.Extend
	if len(live[0].Claim.Limits) > 0 {
		extend = e.table.ExtendLive
	}
	left, err := extend(ctx, e.workerID, e.length, claims)
	e.observer.Extended(len(claims), ReallyLost(left, live), now, err)
	if err != nil {
		return nil, ctx.Err() != nil, err
	}
	gone, locked := store.SetOf(left.Lost), store.SetOf(left.Locked)
	for _, l := range live {
		switch {
		case gone[l.Claim.ID]:
			lost = append(lost, l)
		case locked[l.Claim.ID]: // no other worker can claim the task either
			l.locked(now.Add(e.length))
		default:
			l.Extended(now, now.Add(e.length))
		}
	}
	return lost, false, nil
}

// Gone ends runs whose claims are gone. It first reads which tasks are cancelled. That read may hang on a
// silent connection, so Work calls Gone after all extensions.
func (e *Extender) Gone(ctx context.Context, lost ...*Lease) {
	if len(lost) > 0 && e.changes != nil {
		ctx, cancel := retry.StatementContext(ctx, e.extendTimeout())
		defer cancel()
		_ = e.changes.Read(ctx) // after an error the cause is ErrLeaseLost
	}
	for _, l := range lost {
		if e.Has(l) {
			l.Gone()
		}
	}
}

// Ended frees the permits of runs that have ended after their claims were gone. After a failure the
// permits are free when the leases would have expired.
func (e *Extender) Ended(ctx context.Context, lost ...*Lease) {
	var claims []*store.Claim
	for _, l := range lost {
		if len(l.Claim.Limits) > 0 {
			claims = append(claims, l.Claim)
		}
	}
	if len(claims) == 0 {
		return
	}
	ctx, cancel := retry.StatementContext(ctx, e.extendTimeout())
	defer cancel()
	_ = e.table.FreePermits(ctx, claims)
}

// lose marks a lease lost, unless its run has been settled since the list was made.
func (e *Extender) lose(l *Lease) {
	if e.Has(l) {
		l.Lose()
	}
}
