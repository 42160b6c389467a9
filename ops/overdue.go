package ops

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

const (
	// overdueAfter is how long a task has been due when it is overdue.
	overdueAfter = time.Minute
	// maxOverdue is the number up to which the tasks of a kind in a queue are counted.
	maxOverdue = 1000
	// unknownDelay stands for the delay of a lane whose policy is not known.
	unknownDelay = 24 * time.Hour
)

// Overdue is [falldue.Queue.Overdue], with all policies that [Inspector.Policies] knows: those
// of [Config], those that live workers announce, those that tasks have of their own, and what
// overrides make of them. A task that has failed counts as due a day after its failure if its
// policy is not known.
func (i *Inspector) Overdue(ctx context.Context) ([]falldue.Overdue, error) {
	pauses, err := i.queue.Paused(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := i.store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	var list []falldue.Overdue
	for _, queue := range queues {
		found, failed := i.overdueIn(ctx, queue, pauses)
		list, err = append(list, found...), errors.Join(err, failed)
	}
	return list, err
}

// overdueIn lists the overdue tasks of a queue by kind.
func (i *Inspector) overdueIn(ctx context.Context, queue string, pauses []falldue.Pause) (list []falldue.Overdue, err error) {
	heads, err := i.store.NewLaneFinder(queue).Find(ctx)
	if err != nil {
		return nil, err
	}
	known, err := i.Policies(ctx, policyKeys(heads)...)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(heads, func(a, b store.Head) int { return cmp.Compare(a.Kind, b.Kind) })
	for _, h := range heads {
		t, delay := taskIn(queue, h.Lane), time.Duration(0)
		if h.Corrupt != nil || slices.ContainsFunc(pauses, func(p falldue.Pause) bool { return names(p, t) }) {
			continue
		}
		if delayed(h.Lane) { // what is due by now is so under what holds now
			delay = unknownDelay
			if p, ok := known.Of(t); ok {
				delay, _ = p.Wait(int64(h.Attempts))
			}
		}
		anchor := store.Time(max(h.Anchor, 0))
		if due := anchor.Add(delay); store.Time(h.Now).Sub(due) >= overdueAfter {
			if list, err = i.addOverdue(ctx, list, queue, h.Lane, due, delay); err != nil {
				return list, err
			}
		}
	}
	// Others may have taken the tasks of a lane since it was found.
	return slices.DeleteFunc(list, func(o falldue.Overdue) bool { return o.Tasks == 0 }), nil
}

// addOverdue adds the overdue tasks of a lane to a list whose last element may be of its kind.
func (i *Inspector) addOverdue(ctx context.Context, list []falldue.Overdue, queue string, at store.Lane, due time.Time, delay time.Duration) ([]falldue.Overdue, error) {
	if n := len(list); n == 0 || list[n-1].Kind != at.Kind {
		list = append(list, falldue.Overdue{Queue: queue, Kind: at.Kind, DueSince: due})
	}
	last := &list[len(list)-1]
	if due.Before(last.DueSince) {
		last.DueSince = due
	}
	if last.Tasks >= maxOverdue {
		return list, nil
	}
	n, err := i.store.CountSince(ctx, queue, at, delay+overdueAfter, maxOverdue-last.Tasks)
	last.Tasks += n
	return list, err
}

// names reports whether a pause names a task.
func names(p falldue.Pause, t falldue.TaskInfo) bool {
	return (p.Queue == "" || p.Queue == t.Queue) && (p.Kind == "" || p.Kind == t.Kind) && (p.Policy == "" || p.Policy == t.Policy) && (p.Key == "" || p.Key == t.Key)
}
