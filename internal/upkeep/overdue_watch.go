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
	// lookShare limits the time in which a worker searches to a twentieth.
	lookShare = 20
)

// OverdueWatch is the role that warns of overdue tasks that no worker takes: those of kinds
// that the worker does not handle, in lanes whose first task is the same as a minute
// ago.
type OverdueWatch struct {
	tables    overdue.Tables
	handlers  map[string]*run.Handler // by kind
	paused    func(queue string, at store.Lane) bool
	overrides *control.Overrides            // that hold; nil if there are none
	handled   func(queue, kind string) bool // reports whether the worker itself runs such tasks
	events    events
	last      []overdue.Lane // found by the last search
}

// NewOverdueWatch returns an overdue watch. handled reports whether the worker itself runs such
// tasks.
func NewOverdueWatch(s *store.Store, handlers map[string]*run.Handler, changes *control.ChangeReader, overrides *control.Overrides, handled func(queue, kind string) bool, log *slog.Logger) *OverdueWatch {
	return &OverdueWatch{tables: overdue.In(s), handlers: handlers, paused: changes.Paused, overrides: overrides, handled: handled, events: events{log}}
}

// Work looks for overdue tasks until ctx ends.
func (l *OverdueWatch) Work(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := l.look(ctx); err != nil && ctx.Err() == nil {
			l.events.lookFailed(err)
		}
		_ = retry.Pause(ctx, max(overdueEvery, lookShare*time.Since(start))+rand.N(overdueEvery/10))
	}
}

// look looks for overdue tasks once.
func (l *OverdueWatch) look(ctx context.Context) error {
	finder := overdue.Finder{Tables: l.tables, Delays: l.delays}
	found, err := finder.Find(ctx)
	before := map[overdue.Lane]bool{}
	for _, lane := range l.last {
		before[lane] = true
	}
	l.last = slices.Clone(found)
	list, failed := finder.Count(ctx, slices.DeleteFunc(found, func(lane overdue.Lane) bool { return !before[lane] }))
	for _, g := range list {
		l.events.overdue(g)
	}
	return errors.Join(err, failed)
}

// delays returns the delays of the lanes of a queue, without those that the worker handles or that
// are paused.
func (l *OverdueWatch) delays(_ context.Context, queue string, _ []store.Head) (func(store.Lane) (time.Duration, bool), error) {
	return func(at store.Lane) (time.Duration, bool) {
		wanted := !l.handled(queue, at.Kind) && !l.paused(queue, at)
		if h := l.handlers[at.Kind]; h != nil && at.Policy == "" {
			return l.overrides.Current(queue, at, h.Policy).DelayIn(at), wanted
		}
		return overdue.UnknownDelay, wanted
	}, nil
}
