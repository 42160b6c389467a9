package store

import (
	"context"
	"math"
	"time"
)

// LaneFinder finds the lanes of a queue. On engines where one statement may read all
// waiting rows (Caps.LooseScan), it sweeps by steps from lane to lane while there are
// few lanes. Where there are many, it uses one statement until that is slow, and from
// then on the way that took less time when it was last tried.
type LaneFinder struct {
	store    *Store
	queue    string
	strategy sweepStrategy
}

// NewLaneFinder returns a Sweeper of a queue.
func (s *Store) NewLaneFinder(queue string) *LaneFinder { return &LaneFinder{store: s, queue: queue} }

// sweepStrategy decides between one statement and steps for the next sweep.
type sweepStrategy struct {
	oneStatement bool          // the next sweep is one statement
	otherTook    time.Duration // how long the last sweep the other way took
	trial        bool          // the next sweep tries this way
	retryOther   time.Time     // when to try the other way again although it was slower
}

const (
	// fewLanes is the number of lanes up to which steps are as fast as one statement.
	fewLanes = 4
	// slowSweep is the time above which a sweep is slow. A sweep that jumps from lane to
	// lane takes less, unless there are very many lanes.
	slowSweep = 10 * time.Millisecond
	// retryInterval is the time after which the slower way is tried again, unless a
	// hundred times its duration is longer.
	retryInterval = time.Minute
	// minStepTime is about the shortest time that a step takes.
	minStepTime = 500 * time.Microsecond
)

// Find finds the lanes of the queue.
func (w *LaneFinder) Find(ctx context.Context) ([]Head, error) {
	start := time.Now()
	heads, steps, err := w.sweep(ctx)
	// A sweep that timed out is recorded as slow too. A sweep before a refresh of the
	// statistics is not recorded, since it says nothing about the next one.
	took := time.Since(start)
	refreshed := took > slowSweep && !steps && w.store.RefreshStatistics(ctx)
	if w.store.server.Caps.LooseScan && !refreshed {
		w.strategy.record(took, len(heads), time.Now())
	}
	return heads, err
}

// Recheck finds the first task of each source from its since on.
func (w *LaneFinder) Recheck(ctx context.Context, sources []Source) ([]Head, error) {
	return w.store.Recheck(ctx, w.queue, sources)
}

// sweep finds the lanes, and reports whether it found them by steps. Until one
// statement was slow for the first time, it takes steps to a few lanes only.
func (w *LaneFinder) sweep(ctx context.Context) (heads []Head, steps bool, err error) {
	if w.store.server.Caps.LooseScan && !w.strategy.oneStatement {
		most := fewLanes
		if w.strategy.trial || !w.strategy.retryOther.IsZero() {
			most = math.MaxInt
		}
		heads, w.strategy.oneStatement, err = w.store.SweepBySteps(ctx, w.queue, most)
		if !w.strategy.oneStatement {
			return heads, true, err
		}
	}
	heads, err = w.store.Sweep(ctx, w.queue)
	return heads, false, err
}

// record records how long a sweep took and how many lanes it found, and decides how to
// do the next one.
func (s *sweepStrategy) record(d time.Duration, lanes int, now time.Time) {
	slow := d > max(slowSweep, time.Duration(lanes)*minStepTime)
	due := now.After(s.retryOther)
	change := slow && d > 2*s.otherTook
	switch {
	case s.trial:
		change = d > s.otherTook
		s.retryOther = now.Add(max(retryInterval, 100*max(d, s.otherTook)))
	case s.oneStatement:
		change = change || slow && due
	default:
		change = (change || due) && lanes > fewLanes
	}
	s.trial = change && !s.trial
	if change {
		s.oneStatement, s.otherTook = !s.oneStatement, d
	}
}
