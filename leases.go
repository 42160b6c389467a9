package falldue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// leases has every claim of a worker from when it is taken until it is settled, and
// extends them all every third of a lease. Beside that it watches by the monotonic
// clock whether a lease is over, since a worker that could not reach the database, or
// was suspended, may no longer own its tasks. It does so whatever an extension waits
// for.
type leases struct {
	workerID string
	length   time.Duration
	events   events
	observer *observer
	classify func(error) dialect.Class
	// extendRows extends leases in the database.
	extendRows extendFunc
	// extendLive does the same for claims under limits, but a lease that is over stays over.
	extendLive extendFunc
	// freePermits frees the permits of claims that were ended from outside. It may be nil.
	freePermits func(context.Context, []*store.Claim) error
	// readChanges finds out which tasks are cancelled, and ends their runs. It may be nil.
	readChanges func(context.Context) error

	mu   sync.Mutex
	held map[*taskRun]struct{}
}

type extendFunc func(ctx context.Context, workerID string, length time.Duration, claims []store.Key) (store.Unsettled, error)

func newLeases(workerID string, length time.Duration, s *store.Store, events events) *leases {
	return &leases{
		workerID: workerID, length: length, events: events, classify: s.Server().Classify,
		extendRows: s.Extend, extendLive: s.ExtendLive, freePermits: s.FreePermits, held: map[*taskRun]struct{}{},
	}
}

// hold adds runs whose claims were just taken.
func (l *leases) hold(runs ...*taskRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range runs {
		l.held[r] = struct{}{}
	}
}

// drop removes runs whose claims are settled or lost.
func (l *leases) drop(runs ...*taskRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range runs {
		delete(l.held, r)
	}
}

// count returns how many claims the worker holds.
func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// work extends and watches the leases until ctx ends.
func (l *leases) work(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { l.watch(ctx) })
	defer watching.Wait()
	tick := time.NewTicker(l.length / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list := l.list()
		// In the order of ids, so that two workers do not deadlock.
		slices.SortFunc(list, byTask)
		limited, others := parted(l.latest(list))
		lost := l.extendAll(ctx, limited)
		l.gone(ctx, append(lost, l.extendAll(ctx, others)...))
	}
}

// watch marks leases lost as soon as they are over, until ctx ends.
func (l *leases) watch(ctx context.Context) {
	for ctx.Err() == nil {
		now := time.Now()
		next := now.Add(l.length / 4) // a lease that a claim under way takes ends later
		for _, r := range l.list() {
			switch end := r.lease.end(); {
			case !now.Before(end):
				l.lose(r)
			case end.Before(next):
				next = end
			}
		}
		_ = pause(ctx, max(time.Until(next), minWatch))
	}
}

// minWatch is the shortest time between two looks at all leases.
const minWatch = 10 * time.Millisecond

// list returns the runs whose claims are held.
func (l *leases) list() []*taskRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.held))
}

// latest removes from a sorted list the earlier claims of a task that this worker
// has claimed again. Their leases are lost.
func (l *leases) latest(list []*taskRun) []*taskRun {
	kept := list[:0]
	for i, r := range list {
		if i+1 < len(list) && list[i+1].claim.ID == r.claim.ID {
			l.lose(r)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// parted parts runs into those under limits and the others.
func parted(list []*taskRun) (limited, others []*taskRun) {
	for _, r := range list {
		if len(r.claim.Limits) > 0 {
			limited = append(limited, r)
		} else {
			others = append(others, r)
		}
	}
	return limited, others
}

// extendAll extends the leases of a list, a portion at a time. When the database refuses
// to extend one of them, or hangs because of one, the others are extended without it. The
// rest waits for the next tick when the database does not answer or seems to refuse all.
// It returns the runs whose claims are gone.
func (l *leases) extendAll(ctx context.Context, list []*taskRun) (lost []*taskRun) {
	portion, limit := newPortion(), l.extendTimeout()
	for len(list) > 0 {
		n := min(len(list), portion.size)
		left, late, err := l.extend(ctx, list[:n], limit)
		if err == nil {
			lost = append(lost, left...)
			portion.accepted()
			list = list[n:]
			continue
		}
		trouble := troubleOf(l.classify(err), late)
		portion.failed(n, trouble)
		if late && portion.failures > maxHangs || trouble == outage || trouble == unclear && portion.failures > hastyFailures {
			l.events.extendFailed(len(list), err)
			return lost
		}
		if n == 1 {
			l.events.extendRefused(list[0].claim, err)
			list = list[1:]
		} else if late { // those that may be to blame come last, before their leases end
			list = slices.Concat(list[n:], list[:n])
			limit = min(limit, l.length/hangShare)
		}
	}
	return lost
}

// extendTimeout is the longest time for a statement that extends leases.
func (l *leases) extendTimeout() time.Duration { return min(l.length/3, statementTimeout) }

const (
	// maxHangs is how many statements in a row may hang until the database seems to be
	// away: enough to find one task among MaxBatch.
	maxHangs = 4
	// hangShare limits the statements after one that hung to this part of a lease.
	hangShare = 60
)

// extend extends the leases of a batch within a time. It returns the runs whose claims are
// gone, and reports whether it timed out.
func (l *leases) extend(ctx context.Context, batch []*taskRun, limit time.Duration) (lost []*taskRun, late bool, err error) {
	now := time.Now()
	live, claims := make([]*taskRun, 0, len(batch)), make([]store.Key, 0, len(batch))
	for _, r := range batch {
		if !r.lease.holds(now) && !r.lease.doneTxGoesOn(now) {
			l.lose(r)
			continue
		}
		live, claims = append(live, r), append(claims, store.Key{TaskID: r.claim.ID, Fence: r.claim.Fence})
	}
	if len(live) == 0 {
		return nil, false, nil
	}
	ctx, cancel := statementContext(ctx, limit)
	defer cancel()
	extend := l.extendRows
	if len(live[0].claim.Limits) > 0 {
		extend = l.extendLive
	}
	left, err := extend(ctx, l.workerID, l.length, claims)
	l.observer.extended(len(claims), left, now, err)
	if err != nil {
		return nil, ctx.Err() != nil, err
	}
	gone, locked := store.SetOf(left.Lost), store.SetOf(left.Locked)
	for _, r := range live {
		switch {
		case gone[r.claim.ID]:
			lost = append(lost, r)
		case locked[r.claim.ID]: // nobody else can claim it either
			r.lease.locked(now.Add(l.length))
		default:
			r.lease.extended(now, now.Add(l.length))
		}
	}
	return lost, false, nil
}

// gone ends runs whose claims are gone. It first finds out which tasks are cancelled, on a
// connection that may have gone silent, so that it comes after all extensions.
func (l *leases) gone(ctx context.Context, lost []*taskRun) {
	if len(lost) > 0 && l.readChanges != nil {
		ctx, cancel := statementContext(ctx, l.extendTimeout())
		defer cancel()
		_ = l.readChanges(ctx) // or the cause is ErrLeaseLost
	}
	for _, r := range lost {
		if l.holds(r) {
			r.lease.gone()
		}
	}
}

// ended frees the permits of runs that have ended after their claims. Where that fails they are
// free when the leases would have been over.
func (l *leases) ended(ctx context.Context, runs ...*taskRun) {
	var claims []*store.Claim
	for _, r := range runs {
		if len(r.claim.Limits) > 0 {
			claims = append(claims, r.claim)
		}
	}
	if len(claims) == 0 || l.freePermits == nil {
		return
	}
	ctx, cancel := statementContext(ctx, l.extendTimeout())
	defer cancel()
	_ = l.freePermits(ctx, claims)
}

// lose marks the lease of a run lost, unless the run has been settled since the list
// was made.
func (l *leases) lose(r *taskRun) {
	if l.holds(r) {
		r.lease.lose()
	}
}

// cancelled ends the runs of tasks that are cancelled. fences has, by the ids of the
// tasks, the fences up to which runs are: a task may have been retried since.
func (l *leases) cancelled(fences map[int64]int64) {
	for _, r := range l.list() {
		if fence, ok := fences[r.claim.ID]; ok && r.claim.Fence <= fence {
			r.lease.loseBy(ErrCancelled)
		}
	}
}

// holds reports whether the claim of a run is neither settled nor lost.
func (l *leases) holds(r *taskRun) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, held := l.held[r]
	return held
}

const (
	// reportEvery is how often a worker that waits for handlers says so.
	reportEvery = time.Minute
	// maxReported is the greatest number of tasks that it names.
	maxReported = 20
)

// report reports now and each minute the tasks that are held, until done is closed.
func (l *leases) report(done <-chan struct{}) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		if list := l.list(); len(list) > 0 {
			slices.SortFunc(list, byTask)
			l.events.stillRunning(list, maxReported)
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}
