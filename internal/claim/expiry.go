package claim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// expiry cancels the tasks of a queue that have not started in time.
//
// A policy's limit is the same for all new tasks of a lane, so the expired tasks are a range of the index. A few
// statements cancel a batch of them, and claims skip the range. Tasks that do not expire cost nothing.
//
// Tasks' own times are in no order. A claim finds the first expired tasks, and their handlers do not run. If half of
// the tasks of a claim have expired, later tasks are cancelled in batches, too.
//
// Under a rate, a claim leaves the expired tasks that it finds, since they would use up the rate. Their lane is parked
// until they are cancelled. If that fails, for example because the database refuses to change one of them, a claim takes
// them like other tasks, so that they hold no other task up.
type expiry struct {
	queue  string
	table  table
	events events
	tasks  expiredTasks
	woken  chan struct{} // signalled when a lane has expired tasks
	freed  func(limits []string)

	mu   sync.Mutex
	late map[lateLane]bool
	// failures counts how often in a row none of the expired tasks of a lane could be cancelled.
	failures map[store.Lane]int
	now      int64     // the database's time when a lane with a limit was last read
	nowAt    time.Time // when the answer with now came
}

// lateLane is a lane with expired tasks: under a policy that limits the time to the first attempt, or by the tasks' own
// times if within is 0.
type lateLane struct {
	store.Lane
	within time.Duration
}

// expiredTasks is told of tasks that have expired without a claim.
type expiredTasks interface {
	// Expired counts the tasks.
	Expired(queue, kind string, tasks int)
	// Ended reports tasks on which others depend.
	Ended(members, gone []int64)
}

// newExpiry returns the expiry of a queue. It calls freed with the name of a lane (expiryOf) after it has cancelled
// expired tasks in the lane, since claims may wait for this.
func newExpiry(cfg PollerConfig, freed func(limits []string)) *expiry {
	return &expiry{
		queue: cfg.Queue, table: cfg.Table, events: cfg.events(), tasks: cfg.Expired, woken: make(chan struct{}, 1),
		late: map[lateLane]bool{}, freed: freed, failures: map[store.Lane]int{},
	}
}

// found notes the first task of a lane, and wakes work if the task has expired.
func (e *expiry) found(h store.Head, policy *control.CompiledPolicy) {
	within := policy.StartWithin(h.Lane)
	if within == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now, e.nowAt = h.Now, time.Now()
	if store.Duration(h.Now-h.Anchor) > within {
		e.wake(h.Lane, within)
	}
}

// wake makes work cancel the expired tasks of a lane.
func (e *expiry) wake(at store.Lane, within time.Duration) {
	e.late[lateLane{at, within}] = true
	retry.Signal(e.woken)
}

// claimed wakes work if half of the tasks of a claim have expired by their own times.
func (e *expiry) claimed(claims []*store.Claim) {
	expired, last := 0, store.Lane{}
	for _, c := range claims {
		if store.HasExpired(c.Metadata, c.From, c.Now) {
			expired, last = expired+1, c.From
		}
	}
	if expired == 0 || 2*expired < len(claims) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wake(last, 0)
}

// mostFailures is how often in a row none of the expired tasks of a lane can be cancelled before a claim takes them.
// Another process may have them locked, since it cancels them, too.
const mostFailures = 2

// expiryOf is the name under which a lane is parked while its expired tasks are cancelled, as if it were a limit.
func expiryOf(at store.Lane) string { return fmt.Sprintf("expiry %+v", at) }

// cancels reports whether a claim should leave the expired tasks of a lane.
func (e *expiry) cancels(at store.Lane) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failures[at] < mostFailures {
		return true
	}
	delete(e.failures, at)
	return false
}

// left wakes work after a claim has left expired tasks of a lane, which is parked.
func (e *expiry) left(at store.Lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wake(at, 0)
}

// ended releases a lane in which a claim may have left expired tasks. failed reports that none of them was cancelled.
func (e *expiry) ended(at store.Lane, failed bool) {
	e.mu.Lock()
	if failed {
		e.failures[at]++
	} else {
		delete(e.failures, at)
	}
	e.mu.Unlock()
	e.freed([]string{expiryOf(at)})
}

// since returns the anchor from which a claim searches a lane: behind the tasks that have certainly expired. The
// database's clock shows at least the time of its last answer, plus the time since then.
func (e *expiry) since(at store.Lane, policy *control.CompiledPolicy, since int64) int64 {
	within := policy.StartWithin(at)
	if within == 0 {
		return since
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now == 0 {
		return since
	}
	return max(since, e.now+time.Since(e.nowAt).Microseconds()-within.Microseconds())
}

// work cancels expired tasks until ctx ends.
func (e *expiry) work(ctx context.Context) {
	for ctx.Err() == nil {
		at, ok := e.next()
		if !ok {
			retry.Await(ctx, e.woken, time.Hour)
			continue
		}
		e.cancel(ctx, at)
	}
}

// next removes and returns a lane with expired tasks.
func (e *expiry) next() (at lateLane, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at = range e.late {
		delete(e.late, at)
		return at, true
	}
	return at, false
}

// cancel cancels the expired tasks of a lane, a batch at a time. After an error the next sweep,
// or the next claim, finds the lane again.
func (e *expiry) cancel(ctx context.Context, at lateLane) {
	count, failed := 0, false
	defer func() {
		if at.within == 0 {
			e.ended(at.Lane, failed && count == 0)
		}
		if count > 0 {
			e.events.tasksExpired(e.queue, at.Kind, at.within, count)
			e.tasks.Expired(e.queue, at.Kind, count)
		}
	}()
	for more := true; more && ctx.Err() == nil; {
		batch, err := e.batch(ctx, at)
		failed = err != nil || batch.Refused
		if err != nil {
			if ctx.Err() == nil {
				e.events.expireFailed(e.queue, at.Kind, err)
			}
			return
		}
		count, more = count+len(batch.IDs), batch.More
		if batch.Members {
			e.tasks.Ended(batch.IDs, nil)
		}
	}
}

func (e *expiry) batch(ctx context.Context, at lateLane) (store.Expired, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	why := outcome.WhyExpired(at.within)
	if at.within == 0 {
		return e.table.ExpireDated(ctx, e.queue, at.Lane, why)
	}
	return e.table.Expire(ctx, e.queue, at.Lane, at.within, why)
}
