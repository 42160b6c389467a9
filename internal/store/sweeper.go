package store

import (
	"context"
	"math"
	"time"
)

// Sweeper sweeps a queue. Where an engine may read all waiting rows to find the
// lanes by one statement, it steps from lane to lane while there are few lanes.
// Where there are many it uses one statement until that is slow, and from then on
// the way that took less time when it was last tried.
type Sweeper struct {
	store *Store
	queue string
	way   sweepStrategy
}

// NewSweeper returns a sweeper of a queue.
func (s *Store) NewSweeper(queue string) *Sweeper { return &Sweeper{store: s, queue: queue} }

// sweepStrategy decides how the next sweep goes.
type sweepStrategy struct {
	whole bool          // by one statement
	other time.Duration // what the last sweep the other way took
	trial bool          // this way is new since then
	again time.Time     // when to try the other way although it was slower
}

const (
	// fewLanes are so few that steps to them are as good as one statement.
	fewLanes = 4
	// slowSweep is how long no sweep takes that jumps from lane to lane, unless
	// there are very many.
	slowSweep = 10 * time.Millisecond
	// tryAgain is how long the slower way is left alone, or a hundred times what it
	// took if that is longer.
	tryAgain = time.Minute
	// stepTakes is the least that a step takes, or nearly.
	stepTakes = 500 * time.Microsecond
)

// Sweep finds the lanes of the queue.
func (w *Sweeper) Sweep(ctx context.Context) ([]Head, error) {
	start := time.Now()
	heads, steps, err := w.sweep(ctx)
	// A sweep that was cancelled for being too slow was slow, too. The next one is
	// another matter once the server has refreshed its statistics.
	took := time.Since(start)
	refreshed := took > slowSweep && !steps && w.store.RefreshStatistics(ctx)
	if w.store.server.Caps.LooseScan && !refreshed {
		w.way.took(took, len(heads), time.Now())
	}
	return heads, err
}

// sweep finds the lanes, and reports whether it did by steps. Until the other way
// was slow for the first time it steps to few lanes alone.
func (w *Sweeper) sweep(ctx context.Context) (heads []Head, steps bool, err error) {
	if w.store.server.Caps.LooseScan && !w.way.whole {
		most := fewLanes
		if w.way.trial || !w.way.again.IsZero() {
			most = math.MaxInt
		}
		heads, w.way.whole, err = w.store.SweepBySteps(ctx, w.queue, most)
		if !w.way.whole {
			return heads, true, err
		}
	}
	heads, err = w.store.Sweep(ctx, w.queue)
	return heads, false, err
}

// took notes how long a sweep took and how many lanes it found, and decides on
// the next one.
func (g *sweepStrategy) took(d time.Duration, lanes int, now time.Time) {
	slow := d > max(slowSweep, time.Duration(lanes)*stepTakes)
	due := now.After(g.again)
	change := slow && d > 2*g.other
	switch {
	case g.trial:
		change = d > g.other
		g.again = now.Add(max(tryAgain, 100*max(d, g.other)))
	case g.whole:
		change = change || slow && due
	default:
		change = (change || due) && lanes > fewLanes
	}
	g.trial = change && !g.trial
	if change {
		g.whole, g.other = !g.whole, d
	}
}
