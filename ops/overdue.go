package ops

import (
	"context"
	"errors"
	"time"

	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/store"
)

// Overdue describes overdue tasks of the same kind in the same queue, which all wait for the same limit, or for a
// worker.
type Overdue struct {
	Queue, Kind string
	// Limit is the limit or the sequence that delays these tasks, such as "AtMost(20) of kind
	// charge", or "" if they wait for a worker: no worker handles their kind in their queue, or the
	// workers that do are too busy.
	Limit string
	// HaltedBy is the ID of a dead task that halts the sequence of some or all of these tasks
	// ([falldue.OrderLimit.HaltOnDeath]), or 0. The tasks behind it wait until the dead task is retried or deleted.
	HaltedBy int64
	// Tasks is the number of overdue tasks, counted up to 1,000. More reports whether there may be more.
	Tasks int
	More  bool
	// DueSince is when the first of these tasks fell due, by the database's clock.
	DueSince time.Time
}

// Stuck reports whether the tasks wait for a worker, or behind a dead task of their sequence. Other overdue tasks wait
// for a limit, which is no problem.
func (o Overdue) Stuck() bool { return o.Limit == "" || o.HaltedBy != 0 }

// Overdue lists, by queue, kind and limit, the tasks that have been due for longer than olderThan. olderThan is up to
// 36,500 days, and 0 means a minute. Running and paused tasks ([falldue.Queue.Pause]) are not overdue. Delays follow
// the policies that [Ops.Policies] returns, and limits come from live workers. A task that failed before counts as due
// a day after its failure if its policy is not known. A limit counts as the reason for the delay if the limit has no
// room in five reads within a tenth of a second.
//
// Overdue reads only the beginning of each lane in the index, so the cost does not grow with the number of waiting
// tasks. If Overdue returns an error, tasks of some queues may be missing from the list. Once a minute,
// each worker also looks for overdue tasks that it does not handle itself. It logs a warning about a lane if no worker
// has taken the lane's first task for a minute.
func (o *Ops) Overdue(ctx context.Context, olderThan time.Duration) ([]Overdue, error) {
	if err := checkOlderThan(olderThan); err != nil {
		return nil, err
	}
	now, err := o.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	delays := func(ctx context.Context, queue string, heads []store.Head) (func(store.Lane) (time.Duration, bool), error) {
		err := now.readOwn(ctx, o.store, policyKeys(heads))
		return func(at store.Lane) (time.Duration, bool) { return now.delayOf(queue, at) }, err
	}
	finder := overdue.Finder{Tables: overdue.In(o.store), OlderThan: olderThan, Delays: delays}
	lanes, err := finder.Find(ctx)
	list, failed := now.countOverdue(ctx, finder, lanes)
	return list, errors.Join(err, failed)
}

func checkOlderThan(d time.Duration) error {
	if d < 0 || d > maxDelay {
		return invalid("olderThan %v: must be 0 to %s", d, longestDelay)
	}
	return nil
}

// countOverdue counts the overdue tasks of lanes.
func (s snapshot) countOverdue(ctx context.Context, finder overdue.Finder, lanes []overdue.Lane) ([]Overdue, error) {
	err := finder.SetDelays(ctx, lanes, s.limitsOf)
	groups, failed := finder.Count(ctx, lanes)
	list := make([]Overdue, len(groups))
	for i, g := range groups {
		list[i] = Overdue{g.Queue, g.Kind, g.Limit, g.HaltedBy, g.Tasks, g.Tasks >= overdue.Most, g.DueSince}
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
