package chart

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Policy is a policy as a picture shows it.
type Policy struct {
	Name string
	// Waits has the wait before each retry: the first is that after one failure.
	Waits []Wait
	// Limit is what the waits tend to. A part of it is 0 if that grows without end.
	Limit Wait
	// End says when a task is given up.
	End string
}

// Wait is a wait that is drawn from Shortest to Longest.
type Wait struct{ Shortest, Longest time.Duration }

// Delays shows the wait before each retry under policies, with the bands of their jitters.
func Delays(policies ...Policy) Figure {
	f := Figure{Title: "Policies"}
	if len(policies) == 1 {
		f.Title, f.Note = policies[0].Name, policies[0].End
	}
	plot := Plot{Title: "Wait before each retry", X: Axis{Label: "failures", Unit: Count}, Y: Axis{Unit: Seconds}, Height: 200, Empty: "no retry"}
	shortest, longest, jitter := math.Inf(1), 0.0, false
	for i, p := range policies {
		s, jitters := Series{Name: p.Name}, false
		for n, w := range p.Waits {
			s.Points = append(s.Points, Point{float64(n + 1), w.Shortest.Seconds()})
			s.Upper = append(s.Upper, w.Longest.Seconds())
			shortest, longest, jitters = min(shortest, w.Shortest.Seconds()), max(longest, w.Longest.Seconds()), jitters || w.Longest > w.Shortest
		}
		if jitter = jitter || jitters; !jitters {
			s.Upper = nil
		}
		plot.Series = append(plot.Series, s)
		for _, l := range p.limits() {
			same := slices.IndexFunc(plot.Limits, func(o Limit) bool { return o.Label == l.Label })
			if l.Color = colorOf(i); same < 0 {
				plot.Limits = append(plot.Limits, l)
			} else {
				plot.Limits[same].Color = Faint
			}
		}
	}
	if jitter {
		plot.Title += ", with jitter"
	}
	// A logarithmic axis shows the first waits, too, if they are much shorter.
	if plot.Y.Log = shortest > 0 && longest/100 > shortest; plot.Y.Log {
		plot.Title += " (logarithmic)"
	}
	f.Panels = []Panel{plot}
	return f
}

// limits returns the limits that the waits come near, but not one that all waits have.
func (p Policy) limits() (list []Limit) {
	near := func(limit time.Duration, of func(Wait) time.Duration, label string) {
		first, last := time.Duration(math.MaxInt64), time.Duration(0)
		for _, w := range p.Waits {
			first, last = min(first, of(w)), max(last, of(w))
		}
		if limit > 0 && last >= limit/2 && first < limit-limit/50 {
			list = append(list, Limit{At: limit.Seconds(), Label: fmt.Sprintf(label, Duration(limit))})
		}
	}
	near(p.Limit.Shortest, func(w Wait) time.Duration { return w.Shortest }, "limit %s")
	if p.Limit.Longest > p.Limit.Shortest {
		near(p.Limit.Longest, func(w Wait) time.Duration { return w.Longest }, "limit %s with jitter")
	}
	return list
}
