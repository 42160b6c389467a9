package falldue

import (
	"context"
	"math"
	"time"
)

// gait is how a poller sweeps on an engine that may read all that waits to find
// its lanes by one statement: lane by lane while they are few. Where they are
// not, by one statement until that is slow, and from then on the way that took
// less when it was last tried.
type gait struct {
	whole bool          // by one statement
	other time.Duration // what the last sweep the other way took
	trial bool          // this way is new since then
	again time.Time     // when to try the other way although it was slower
}

const (
	// fewLanes are so few that steps to them are as good as one statement.
	fewLanes = 4
	// tryAgain is how long the slower way is left alone, or a hundred times what it
	// took if that is longer.
	tryAgain = time.Minute
	// stepTakes is what a step takes at the least, or nearly.
	stepTakes = 500 * time.Microsecond
)

// sweep finds the lanes of a queue, and tells whether it did by steps. Before the
// other way was ever slow it steps to few lanes alone.
func (g *gait) sweep(ctx context.Context, s *store, queue string) (heads []head, steps bool, err error) {
	if s.server.Caps.LooseScan && !g.whole {
		most := fewLanes
		if g.trial || !g.again.IsZero() {
			most = math.MaxInt
		}
		heads, g.whole, err = s.sweepBySteps(ctx, queue, most)
		if !g.whole {
			return heads, true, err
		}
	}
	heads, err = s.sweep(ctx, queue)
	return heads, false, err
}

// took is told what a sweep took, and how many lanes it found, and decides on
// the next one.
func (g *gait) took(d time.Duration, lanes int, now time.Time) {
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
