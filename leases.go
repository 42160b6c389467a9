package falldue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// leases holds every claim of a worker from the moment it is taken until it is
// settled, and extends them all every third of a lease. It also notices by
// itself when a lease is over, by the monotonic clock: a worker that could not
// reach the database, or was stopped, must not go on as if it owned its tasks.
type leases struct {
	w *worker

	mu   sync.Mutex
	held map[*run]struct{}
}

func newLeases(w *worker) *leases { return &leases{w: w, held: map[*run]struct{}{}} }

// hold registers claims.
func (l *leases) hold(runs ...*run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range runs {
		l.held[r] = struct{}{}
	}
}

// count is how many claims the worker holds.
func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// drop lets go of claims that are settled or lost.
func (l *leases) drop(runs ...*run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range runs {
		delete(l.held, r)
	}
}

// loop extends the leases until ctx ends.
func (l *leases) loop(ctx context.Context) {
	tick := time.NewTicker(l.w.q.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		list := make([]*run, 0, len(l.held))
		for r := range l.held {
			list = append(list, r)
		}
		l.mu.Unlock()
		// In the order of ids, so that no two workers lock rows crosswise.
		slices.SortFunc(list, byTask)
		list = l.latest(list)
		for batch := range slices.Chunk(list, maxBatch) {
			l.extend(ctx, batch)
		}
	}
}

// latest drops from a sorted list the claims that this worker lost to itself: it
// claimed the task again after the lease had run out.
func (l *leases) latest(list []*run) []*run {
	kept := list[:0]
	for i, r := range list {
		if i+1 < len(list) && list[i+1].claim.id == r.claim.id {
			l.lose(r)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

func (l *leases) extend(ctx context.Context, batch []*run) {
	now := time.Now()
	live := make([]*run, 0, len(batch))
	fences := make([]statements.Row, 0, len(batch))
	for _, r := range batch {
		if !r.holds(now) {
			l.lose(r)
			continue
		}
		live = append(live, r)
		fences = append(fences, statements.Row{r.claim.id, r.claim.fence})
	}
	if len(live) == 0 {
		return
	}
	ctx, end := unhurried(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, l.w.q.cfg.Lease/3)
	defer cancel()
	lost, locked, err := l.w.q.store.extend(ctx, l.w.id, l.w.q.cfg.Lease, fences)
	if err != nil {
		l.w.q.cfg.Logger.Warn("falldue: cannot extend leases", "tasks", len(live), "error", err)
		for _, r := range live {
			if !r.holds(time.Now()) {
				l.lose(r)
			}
		}
		return
	}
	gone, stuck := setOf(lost), setOf(locked)
	for _, r := range live {
		if gone[r.claim.id] {
			l.lose(r)
		} else if !stuck[r.claim.id] { // nobody else can claim what is locked, either
			r.extended(now.Add(l.w.q.cfg.Lease))
		}
	}
}

// lose ends a run whose lease is gone. A run that was settled since the list
// was made is not held any more, and not lost.
func (l *leases) lose(r *run) {
	l.mu.Lock()
	_, held := l.held[r]
	l.mu.Unlock()
	if held {
		r.lose()
	}
}

// holds tells whether the lease was not over at now.
func (r *run) holds(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until)
}

func (r *run) extended(until time.Time) {
	r.mu.Lock()
	r.until = until
	r.mu.Unlock()
}
