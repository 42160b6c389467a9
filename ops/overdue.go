package ops

import (
	"context"
	"errors"
	"time"

	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/store"
)

// Overdue describes the tasks of a kind in a queue that have been due for more than a minute.
type Overdue struct {
	Queue, Kind string
	// Tasks is the number of these tasks, counted up to 1,000.
	Tasks int
	// DueSince is when the first of them fell due, by the database's clock.
	DueSince time.Time
}

// Overdue lists, by queue and kind, the tasks that have been due for more than a minute: no worker
// handles their kind in their queue, the workers that do are too busy, or a limit or a sequence
// delays them. Running tasks are not overdue, nor are paused ones ([falldue.Queue.Pause]). Delays
// are those of the policies that [Ops.Policies] returns. A task that failed before counts as due a
// day after its failure if its policy is not known.
//
// Overdue jumps from lane to lane in the index, and costs no more if more tasks wait. With an
// error, tasks of some queues may be missing. Workers look for overdue tasks once a minute, too, and
// log those of kinds that they do not handle if the first of them has not been taken since.
func (o *Ops) Overdue(ctx context.Context) ([]Overdue, error) {
	now, err := o.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	finder := overdue.Finder{Tables: overdue.In(o.store)}
	finder.Delays = func(ctx context.Context, queue string, heads []store.Head) (func(store.Lane) (time.Duration, bool), error) {
		err := now.readOwn(ctx, o.store, policyKeys(heads))
		return func(at store.Lane) (time.Duration, bool) { return now.delayOf(queue, at) }, err
	}
	lanes, err := finder.Find(ctx)
	groups, failed := finder.Count(ctx, lanes)
	list := make([]Overdue, len(groups))
	for i, g := range groups {
		list[i] = Overdue(g)
	}
	return list, errors.Join(err, failed)
}

// delayOf returns the delay of a lane under the policy that is in effect now, by which everything
// is due that is. It returns false for lanes that are paused.
func (s snapshot) delayOf(queue string, at store.Lane) (delay time.Duration, wanted bool) {
	t := taskIn(queue, at)
	policy, known := s.Of(t)
	if delay, _ = policy.Wait(int64(at.Attempts)); !known {
		delay = overdue.UnknownDelay
	}
	return delay, !s.paused(t)
}
