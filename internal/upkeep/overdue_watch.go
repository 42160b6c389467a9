package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

const (
	// overdueEvery is the time between two searches for overdue tasks.
	overdueEvery = time.Minute
	// searchPauseFactor limits the time in which a worker searches to a twentieth.
	searchPauseFactor = 20
)

// OverdueWatch is the role that warns of overdue tasks that no worker takes. It warns of kinds
// that its own worker does not handle, in lanes whose first task is the same as a minute ago.
// It leaves out lanes that a limit of other workers delays.
type OverdueWatch struct {
	tables    overdue.Tables
	works     func(queue string) bool // reports whether the worker works on a queue
	handlers  map[string]*run.Handler // by kind
	pauses    pauses
	overrides *control.Overrides // nil if there are none
	events    events
	last      []overdue.Lane // found by the last search
}

// pauses knows which lanes are paused.
type pauses interface {
	Paused(queue string, at store.Lane) bool
}

// NewOverdueWatch returns an overdue watch of a worker. works reports whether it works on a queue.
func NewOverdueWatch(tables overdue.Tables, works func(queue string) bool, handlers map[string]*run.Handler, pauses pauses, overrides *control.Overrides, log *slog.Logger) *OverdueWatch {
	return &OverdueWatch{tables: tables, works: works, handlers: handlers, pauses: pauses, overrides: overrides, events: events{log}}
}

// Work searches for overdue tasks until ctx ends.
func (l *OverdueWatch) Work(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := l.search(ctx); err != nil && ctx.Err() == nil {
			l.events.searchFailed(err)
		}
		_ = retry.Pause(ctx, max(overdueEvery, searchPauseFactor*time.Since(start))+rand.N(overdueEvery/10))
	}
}

// search searches for overdue tasks once.
func (l *OverdueWatch) search(ctx context.Context) error {
	finder := overdue.Finder{Tables: l.tables, Delays: l.delays}
	found, err := finder.Find(ctx)
	before := map[overdue.Lane]bool{}
	for _, lane := range l.last {
		before[lane] = true
	}
	l.last = slices.Clone(found)
	found = slices.DeleteFunc(found, func(lane overdue.Lane) bool { return !before[lane] })
	if len(found) > 0 {
		err = errors.Join(err, l.setDelays(ctx, finder, found))
	}
	list, failed := finder.Count(ctx, slices.DeleteFunc(found, func(lane overdue.Lane) bool { return lane.Limit != "" && lane.HaltedBy == 0 }))
	for _, g := range list {
		l.events.overdue(g)
	}
	return errors.Join(err, failed)
}

// delays returns the delays of the lanes of a queue. It leaves out lanes that the worker handles, and
// paused lanes.
func (l *OverdueWatch) delays(_ context.Context, queue string, _ []store.Head) (func(store.Lane) (time.Duration, bool), error) {
	return func(at store.Lane) (time.Duration, bool) {
		h := l.handlers[at.Kind]
		wanted := (h == nil || !l.works(queue)) && !l.pauses.Paused(queue, at)
		if h != nil && at.Policy == "" {
			return l.overrides.Current(queue, at, h.Policy).DelayIn(at), wanted
		}
		return overdue.UnknownDelay, wanted
	}, nil
}

// setDelays sets the limits of other workers that delay lanes. If the workers cannot be read, their
// limits are not known.
func (l *OverdueWatch) setDelays(ctx context.Context, finder overdue.Finder, lanes []overdue.Lane) error {
	workers, err := l.tables.LiveWorkers(ctx)
	if err != nil {
		return nil //nolint:nilerr // the database user may lack the permission to read the table
	}
	return finder.SetDelays(ctx, lanes, func(queue string, at store.Lane) (list []overdue.Applied) {
		for _, w := range workers {
			q, works := w.Queue(queue)
			k, handles := w.Kinds[at.Kind]
			if works && handles && !w.Stopping {
				list = overdue.AppendLimits(list, "", queue, at, q.Limits, k.Limits)
			}
		}
		return list
	})
}
