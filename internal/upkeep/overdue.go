package upkeep

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

const (
	// overdueAfter is how long a task has been due when it is overdue.
	overdueAfter = time.Minute
	// overdueEvery is the time between two searches for overdue tasks.
	overdueEvery = time.Minute
	// unknownDelay stands for the delay of a lane whose policy the process does not
	// know.
	unknownDelay = 24 * time.Hour
	// lookShare limits the time in which a worker searches to a twentieth.
	lookShare = 20
)

// maxOverdue is the number up to which overdue tasks are counted.
const maxOverdue = 1000

// overdue describes the tasks of a kind in a queue that are overdue.
type overdue struct {
	Queue, Kind string
	Tasks       int // counted up to maxOverdue
	DueSince    time.Time
}

// overdueFinder finds overdue tasks of all queues, by the lanes in which they are.
type overdueFinder struct {
	handlers map[string]*run.Handler // by kind
	paused   func(queue string, at store.Lane) bool
	// overrides has the overrides of policies that hold; nil if there are none.
	overrides *control.Overrides
	queues    func(context.Context) ([]string, error)
	heads     func(ctx context.Context, queue string) ([]store.Head, error)
	count     func(ctx context.Context, queue string, at store.Lane, wait time.Duration, most int) (int, error)
}

func NewOverdueFinder(s *store.Store, handlers map[string]*run.Handler, paused func(string, store.Lane) bool, o *control.Overrides) overdueFinder {
	finders := map[string]*store.LaneFinder{} // they remember how to sweep fast
	return overdueFinder{
		handlers: handlers, paused: paused, overrides: o,
		queues: func(ctx context.Context) ([]string, error) {
			ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
			defer cancel()
			list, err := s.Queues(ctx)
			maps.DeleteFunc(finders, func(queue string, _ *store.LaneFinder) bool { return err == nil && !slices.Contains(list, queue) })
			return list, err
		},
		// A queue whose sweep takes too long does not keep the others from being swept.
		heads: func(ctx context.Context, queue string) ([]store.Head, error) {
			if finders[queue] == nil {
				finders[queue] = s.NewLaneFinder(queue)
			}
			ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
			defer cancel()
			return finders[queue].Find(ctx)
		},
		count: func(ctx context.Context, queue string, at store.Lane, wait time.Duration, most int) (int, error) {
			ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
			defer cancel()
			return s.CountSince(ctx, queue, at, wait, most)
		},
	}
}

// overdueLane is a lane whose first task is overdue.
type overdueLane struct {
	queue string
	store.Lane
	delay  time.Duration
	anchor int64 // of the first task
}

// Find lists the lanes whose first tasks are overdue, except those that skip reports. With
// an error, lanes of some queues may be missing.
func (f *overdueFinder) Find(ctx context.Context, skip func(queue, kind string) bool) (list []overdueLane, err error) {
	queues, err := f.queues(ctx)
	for _, queue := range queues {
		heads, failed := f.heads(ctx, queue)
		err = errors.Join(err, failed)
		for _, h := range heads {
			delay := f.delay(queue, h.Lane)
			if h.Corrupt == nil && !skip(queue, h.Kind) && !f.paused(queue, h.Lane) && store.Duration(h.Now-max(h.Anchor, 0))-delay >= overdueAfter {
				list = append(list, overdueLane{queue, h.Lane, delay, h.Anchor})
			}
		}
	}
	return list, err
}

// delay returns the delay of the tasks of a lane.
func (f *overdueFinder) delay(queue string, at store.Lane) time.Duration {
	switch h := f.handlers[at.Kind]; {
	case at.State == statements.StateSnoozed || at.Attempts == 0:
		return 0
	case at.Policy == "" && h != nil:
		return f.overrides.Current(queue, at, h.Policy).DelayIn(at)
	}
	return unknownDelay
}

// Total counts the overdue tasks of lanes, by queue and kind.
func (f *overdueFinder) Total(ctx context.Context, lanes []overdueLane) (list []overdue, err error) {
	slices.SortStableFunc(lanes, func(a, b overdueLane) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.Kind, b.Kind))
	})
	for _, l := range lanes {
		if n := len(list); n == 0 || list[n-1].Queue != l.queue || list[n-1].Kind != l.Kind {
			list = append(list, overdue{Queue: l.queue, Kind: l.Kind, DueSince: l.Due()})
		}
		last := &list[len(list)-1]
		if due := l.Due(); due.Before(last.DueSince) {
			last.DueSince = due
		}
		if last.Tasks < maxOverdue {
			n, err := f.count(ctx, l.queue, l.Lane, l.delay+overdueAfter, maxOverdue-last.Tasks)
			if err != nil {
				return list, err
			}
			last.Tasks += n
		}
	}
	// Others may have taken the tasks of a lane since it was found.
	return slices.DeleteFunc(list, func(o overdue) bool { return o.Tasks == 0 }), nil
}

// Due returns when the first task of the lane fell due.
func (l overdueLane) Due() time.Time { return store.Time(l.anchor).Add(l.delay) }

// lookout is the role that warns of overdue tasks that no worker takes: those of kinds
// that the worker does not handle, in lanes whose first task is the same as a minute
// ago.
type lookout struct {
	overdueFinder
	handled func(queue, kind string) bool // reports whether the worker itself runs such tasks
	events  events
	last    []overdueLane // found by the last search
}

// NewOverdueWatch returns a lookout. handled reports whether the worker itself runs such tasks.
func NewOverdueWatch(f overdueFinder, handled func(queue, kind string) bool, log *slog.Logger) *lookout {
	return &lookout{overdueFinder: f, handled: handled, events: events{log}}
}

// Work looks for overdue tasks until ctx ends.
func (l *lookout) Work(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := l.Look(ctx); err != nil && ctx.Err() == nil {
			l.events.lookFailed(err)
		}
		_ = retry.Pause(ctx, max(overdueEvery, lookShare*time.Since(start))+rand.N(overdueEvery/10))
	}
}

// Look looks for overdue tasks once.
func (l *lookout) Look(ctx context.Context) error {
	found, err := l.Find(ctx, l.handled)
	before := map[overdueLane]bool{}
	for _, lane := range l.last {
		before[lane] = true
	}
	l.last = slices.Clone(found)
	list, failed := l.Total(ctx, slices.DeleteFunc(found, func(lane overdueLane) bool { return !before[lane] }))
	for _, o := range list {
		l.events.overdue(o)
	}
	return errors.Join(err, failed)
}
