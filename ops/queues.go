package ops

import (
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// Queue describes a named queue.
type Queue struct {
	Name string
	// Kinds are the kinds of the tasks that wait or run.
	Kinds []string
	// Blocked are the kinds of the blocked tasks, which run after other tasks. In a [Pulse], Blocked is nil.
	Blocked []string
	// Lanes is the number of lanes with tasks that wait or run. A lane is a group of tasks with the same delay, see the
	// package comment. Polls take longer with more lanes.
	Lanes int
	// FirstDue is when the first task of these lanes is or was due, as far as the policies of the tasks are known. It is
	// zero if no due time is known.
	FirstDue time.Time
	// Now is the time of the database's clock when the queue was read.
	Now time.Time
}

// Queues lists the queues that have tasks, in any state. It reads only the beginning of each lane in the index, so the
// cost does not grow with the number of waiting tasks.
func (o *Ops) Queues(ctx context.Context) ([]Queue, error) {
	list, err := o.waiting(ctx)
	if err != nil {
		return nil, err
	}
	for n, q := range list {
		heads, err := o.store.FinishedLanes(ctx, q.Name, string(falldue.StateBlocked))
		if err != nil {
			return nil, err
		}
		list[n].Blocked = kindsOf(heads)
	}
	return list, nil
}

// waiting is [Ops.Queues] without the kinds that are blocked.
func (o *Ops) waiting(ctx context.Context) ([]Queue, error) {
	// Without tasks, nothing needs the table of changes, which a user may be unable to read.
	if names, err := o.store.Queues(ctx); err != nil || len(names) == 0 {
		return nil, err
	}
	now, err := o.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	s := o.newSurvey()
	err = s.all(ctx, now)
	return s.list(), err
}

// kindsOf returns the kinds of lanes, sorted.
func kindsOf(heads []store.Head) (kinds []string) {
	for _, h := range heads {
		kinds = append(kinds, h.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// KnowsKind reports whether a task of a kind waits, runs or is blocked, or a live worker handles the kind. If not, the
// name may be mistyped. KnowsKind also returns true if it cannot read the table of workers, for example because of a
// missing permission.
func (o *Ops) KnowsKind(ctx context.Context, kind string) (bool, error) {
	return o.knows(ctx, func(q Queue) bool {
		return slices.Contains(q.Kinds, kind) || slices.Contains(q.Blocked, kind)
	}, func(w Worker) bool {
		_, handles := w.Kinds[kind]
		return handles
	})
}

// KnowsQueue is like [Ops.KnowsKind], for a queue that has a task in any state, or that a live worker works on.
func (o *Ops) KnowsQueue(ctx context.Context, queue string) (bool, error) {
	return o.knows(ctx, func(q Queue) bool { return q.Name == queue }, func(w Worker) bool {
		_, works := w.Queue(queue)
		return works
	})
}

// knows reports whether a queue with tasks or a live worker has a name.
func (o *Ops) knows(ctx context.Context, has func(Queue) bool, works func(Worker) bool) (bool, error) {
	queues, err := o.Queues(ctx)
	if err != nil || slices.ContainsFunc(queues, has) {
		return err == nil, err
	}
	workers, err := o.Workers(ctx)
	if err != nil {
		return true, nil //nolint:nilerr // see KnowsKind
	}
	return slices.ContainsFunc(workers, func(w Worker) bool { return w.Live() && works(w) }), nil
}

func policyKeys(heads []store.Head) (keys []string) {
	for _, h := range heads {
		keys = append(keys, h.Policy)
	}
	return keys
}
