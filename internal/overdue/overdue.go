// Package overdue finds tasks that have been due for more than a minute.
package overdue

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

const (
	// After is how long a task has been due when it is overdue.
	After = time.Minute
	// Most is the number up to which the tasks of a kind in a queue are counted.
	Most = 1000
	// UnknownDelay stands for the delay of a lane whose policy is not known.
	UnknownDelay = 24 * time.Hour
)

// Group is the overdue tasks of a kind in a queue.
type Group struct {
	Queue, Kind string
	// Tasks is the number of these tasks, counted up to Most.
	Tasks int
	// DueSince is when the first of them fell due, by the database's clock.
	DueSince time.Time
}

// Lane is a lane whose first task is overdue.
type Lane struct {
	Queue string
	store.Lane
	Delay  time.Duration
	Anchor int64 // of the first task
}

// due returns when the first task of the lane fell due.
func (l Lane) due() time.Time { return store.Time(l.Anchor).Add(l.Delay) }

// Tables is what a Finder reads.
type Tables interface {
	Queues(ctx context.Context) ([]string, error)
	Heads(ctx context.Context, queue string) ([]store.Head, error)
	CountSince(ctx context.Context, queue string, at store.Lane, wait time.Duration, most int) (int, error)
}

// Finder finds overdue tasks in all queues, through the lanes that have them.
type Finder struct {
	Tables
	// Delays returns what the delay of each lane of a queue is, and false for a lane that is left
	// out. The delay of a lane that never failed does not matter.
	Delays func(ctx context.Context, queue string, heads []store.Head) (func(store.Lane) (time.Duration, bool), error)
}

// Find lists the lanes whose first tasks are overdue. With an error, lanes of some queues may be
// missing: a queue that cannot be swept does not keep it from the others.
func (f Finder) Find(ctx context.Context) (list []Lane, err error) {
	queues, err := f.Queues(ctx)
	for _, queue := range queues {
		heads, failed := f.Heads(ctx, queue)
		if failed == nil {
			var delays func(store.Lane) (time.Duration, bool)
			if delays, failed = f.Delays(ctx, queue, heads); failed == nil {
				list = appendOverdue(list, queue, heads, delays)
			}
		}
		err = errors.Join(err, failed)
	}
	return list, err
}

func appendOverdue(list []Lane, queue string, heads []store.Head, delays func(store.Lane) (time.Duration, bool)) []Lane {
	for _, h := range heads {
		delay, wanted := delays(h.Lane)
		if !h.Delayed() {
			delay = 0
		}
		if wanted && h.Corrupt == nil && store.Duration(h.Now-max(h.Anchor, 0))-delay >= After {
			list = append(list, Lane{queue, h.Lane, delay, h.Anchor})
		}
	}
	return list
}

// Count counts the overdue tasks of lanes, by queue and kind.
func (f Finder) Count(ctx context.Context, lanes []Lane) (list []Group, err error) {
	slices.SortStableFunc(lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind))
	})
	for _, l := range lanes {
		if n := len(list); n == 0 || list[n-1].Queue != l.Queue || list[n-1].Kind != l.Kind {
			list = append(list, Group{Queue: l.Queue, Kind: l.Kind, DueSince: l.due()})
		}
		last := &list[len(list)-1]
		if due := l.due(); due.Before(last.DueSince) {
			last.DueSince = due
		}
		if last.Tasks < Most {
			n, err := f.CountSince(ctx, l.Queue, l.Lane, l.Delay+After, Most-last.Tasks)
			if err != nil {
				return list, err
			}
			last.Tasks += n
		}
	}
	// Others may have taken the tasks of a lane since it was found.
	return slices.DeleteFunc(list, func(g Group) bool { return g.Tasks == 0 }), nil
}

// tables reads a store. It remembers how to sweep queues fast.
type tables struct {
	*store.Store
	finders map[string]*store.LaneFinder
}

// In returns the tables of a store.
func In(s *store.Store) Tables { return tables{s, map[string]*store.LaneFinder{}} }

func (t tables) Queues(ctx context.Context) ([]string, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	list, err := t.Store.Queues(ctx)
	maps.DeleteFunc(t.finders, func(queue string, _ *store.LaneFinder) bool { return err == nil && !slices.Contains(list, queue) })
	return list, err
}

func (t tables) Heads(ctx context.Context, queue string) ([]store.Head, error) {
	if t.finders[queue] == nil {
		t.finders[queue] = t.NewLaneFinder(queue)
	}
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	return t.finders[queue].Find(ctx)
}

func (t tables) CountSince(ctx context.Context, queue string, at store.Lane, wait time.Duration, most int) (int, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return t.Store.CountSince(ctx, queue, at, wait, most)
}
