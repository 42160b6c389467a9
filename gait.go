package falldue

import "time"

// gait is how a poller sweeps on an engine that may read all that waits: by one
// statement until that is slow, and from then on the way that took less when it
// was last tried.
type gait struct {
	steps bool
	other time.Duration // what the last sweep the other way took
	trial bool          // this way is new since then
	again time.Time     // when to try the other way although it was slower
}

// tryAgain is how long the slower way is left alone, or a hundred times what it
// took if that is longer.
const tryAgain = time.Minute

// stepTakes is what a step takes at the least, or nearly.
const stepTakes = 500 * time.Microsecond

// took is told what a sweep took, and how many lanes it found, and decides on
// the next one.
func (g *gait) took(d time.Duration, lanes int, now time.Time) {
	slow := d > max(slowSweep, time.Duration(lanes)*stepTakes)
	turn := slow && d > 2*g.other || (g.steps || slow) && now.After(g.again)
	if g.trial {
		turn = d > g.other
		g.again = now.Add(max(tryAgain, 100*max(d, g.other)))
	}
	g.trial = turn && !g.trial
	if turn {
		g.steps, g.other = !g.steps, d
	}
}
