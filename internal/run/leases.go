package run

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

// Leases extends the lease of every run of a worker, every third of a lease, and sooner after a failure.
// Alongside, it watches with the monotonic clock whether a lease has expired: a worker that could not
// reach the database, or was suspended, may no longer own its tasks. An extension that hangs does not
// hold up the watch.
type Leases struct {
	workerID string
	length   time.Duration
	events   events
	observer Observer
	table    leaseTable
	// changes finds cancelled tasks and ends their runs. It may be nil.
	changes changeReader

	claimed *ClaimedRuns
}

// leaseTable is what leases do to the database.
type leaseTable interface {
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

// NewLeases returns the leases of claimed runs. changes finds cancelled tasks, and may be nil.
func NewLeases(workerID string, length time.Duration, claimed *ClaimedRuns, table leaseTable, changes changeReader, observer Observer, log *slog.Logger) *Leases {
	return &Leases{workerID: workerID, length: length, claimed: claimed, events: events{log}, observer: observer, table: table, changes: changes}
}

// Work extends and watches the leases until ctx ends.
func (l *Leases) Work(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { l.watch(ctx) })
	defer watching.Wait()
	due := time.NewTimer(l.length / 3)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		begun := time.Now()
		// In the order of ids, so that two workers do not deadlock.
		limited, others := parted(l.latest(l.claimed.Sorted()))
		lost, complete := l.extendAll(ctx, limited)
		more, completeToo := l.extendAll(ctx, others)
		l.gone(ctx, append(lost, more...))
		next := l.length / 3
		if !complete || !completeToo {
			next = l.length / 12 // a lost connection must not cost a third of the lease
		}
		due.Reset(next - time.Since(begun))
	}
}

// watch marks leases lost as soon as they have expired, until ctx ends.
func (l *Leases) watch(ctx context.Context) {
	for ctx.Err() == nil {
		now := time.Now()
		next := now.Add(l.length / 4) // the lease of a claim under way ends later
		for _, r := range l.claimed.list() {
			switch end := r.lease.end(); {
			case !now.Before(end):
				l.lose(r)
			case end.Before(next):
				next = end
			}
		}
		_ = retry.Pause(ctx, max(time.Until(next), minWatch))
	}
}

// minWatch is the shortest time between two checks of all leases.
const minWatch = 10 * time.Millisecond

// latest removes from a sorted list the earlier claims of a task that this worker
// has claimed again. Their leases are lost.
func (l *Leases) latest(list []*Run) []*Run {
	kept := list[:0]
	for i, r := range list {
		if i+1 < len(list) && list[i+1].Claim.ID == r.Claim.ID {
			l.lose(r)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// parted parts runs into those under limits and the others.
func parted(list []*Run) (limited, others []*Run) {
	for _, r := range list {
		if len(r.Claim.Limits) > 0 {
			limited = append(limited, r)
		} else {
			others = append(others, r)
		}
	}
	return limited, others
}

// extendAll extends the leases of a list in batches. When the database refuses to extend one of them,
// or hangs because of one, the others are extended without it. When the database does not answer, or
// seems to refuse all, the rest waits for the next call, and extendAll is not complete. It returns the
// runs whose claims are gone.
func (l *Leases) extendAll(ctx context.Context, list []*Run) (lost []*Run, complete bool) {
	batchSize, limit := retry.NewBatchSize(), l.extendTimeout()
	for len(list) > 0 {
		n := min(len(list), batchSize.Size)
		left, late, err := l.extend(ctx, list[:n], limit)
		if err == nil {
			lost = append(lost, left...)
			batchSize.Accepted()
			list = list[n:]
			continue
		}
		failure, _ := batchSize.Failed(n, l.table.Classify(err), late)
		if late && batchSize.Failures > maxHangs || failure == retry.Outage || failure == retry.Unclear && batchSize.Failures > retry.FailuresBeforePause {
			l.events.extendFailed(len(list), err)
			return lost, false
		}
		if n == 1 {
			l.events.extendRefused(list[0].Claim, err)
			list = list[1:]
		} else if late { // the tasks that may be to blame come last
			list = slices.Concat(list[n:], list[:n])
			limit = min(limit, l.length/hungTimeoutDivisor)
		}
	}
	return lost, true
}

// extendTimeout is the longest time for a statement that extends leases.
func (l *Leases) extendTimeout() time.Duration { return min(l.length/3, retry.StatementTimeout) }

const (
	// maxHangs is how many statements in a row may hang before the database seems to be
	// unavailable: enough to find one task among MaxBatch.
	maxHangs = 4
	// hungTimeoutDivisor limits statements after a hanging one to this fraction of a lease.
	hungTimeoutDivisor = 60
)

// extend extends the leases of a batch within a time. It returns the runs whose claims are
// gone, and reports whether it timed out.
func (l *Leases) extend(ctx context.Context, batch []*Run, limit time.Duration) (lost []*Run, late bool, err error) {
	now := time.Now()
	live, claims := make([]*Run, 0, len(batch)), make([]store.Key, 0, len(batch))
	for _, r := range batch {
		if !r.lease.holds(now) && !r.lease.doneTxGoesOn(now) {
			l.lose(r)
			continue
		}
		live, claims = append(live, r), append(claims, store.Key{TaskID: r.Claim.ID, Fence: r.Claim.Fence})
	}
	if len(live) == 0 {
		return nil, false, nil
	}
	ctx, cancel := retry.StatementContext(ctx, limit)
	defer cancel()
	extend := l.table.Extend
	if len(live[0].Claim.Limits) > 0 {
		extend = l.table.ExtendLive
	}
	left, err := extend(ctx, l.workerID, l.length, claims)
	l.observer.Extended(len(claims), left, now, err)
	if err != nil {
		return nil, ctx.Err() != nil, err
	}
	gone, locked := store.SetOf(left.Lost), store.SetOf(left.Locked)
	for _, r := range live {
		switch {
		case gone[r.Claim.ID]:
			lost = append(lost, r)
		case locked[r.Claim.ID]: // no other worker can claim the task either
			r.lease.locked(now.Add(l.length))
		default:
			r.lease.Extended(now, now.Add(l.length))
		}
	}
	return lost, false, nil
}

// gone ends runs whose claims are gone. It first reads which tasks are cancelled. That may hang on a
// silent connection, so that gone is called after all extensions.
func (l *Leases) gone(ctx context.Context, lost []*Run) {
	if len(lost) > 0 && l.changes != nil {
		ctx, cancel := retry.StatementContext(ctx, l.extendTimeout())
		defer cancel()
		_ = l.changes.Read(ctx) // after an error the cause is ErrLeaseLost
	}
	for _, r := range lost {
		if l.claimed.has(r) {
			r.lease.gone()
		}
	}
}

// ended frees the permits of runs that have ended after their claims were gone. After a failure the
// permits are free when the leases would have expired.
func (l *Leases) ended(ctx context.Context, runs ...*Run) {
	var claims []*store.Claim
	for _, r := range runs {
		if len(r.Claim.Limits) > 0 {
			claims = append(claims, r.Claim)
		}
	}
	if len(claims) == 0 {
		return
	}
	ctx, cancel := retry.StatementContext(ctx, l.extendTimeout())
	defer cancel()
	_ = l.table.FreePermits(ctx, claims)
}

// lose marks the lease of a run lost, unless the run has been settled since the list
// was made.
func (l *Leases) lose(r *Run) {
	if l.claimed.has(r) {
		r.lease.lose()
	}
}
