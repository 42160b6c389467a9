package chart

import (
	"fmt"
	"time"
)

// LoadOf is how many tasks fall due in each minute under a policy.
type LoadOf struct {
	Policy string
	// Due is how many are due already.
	Due     int64
	Minutes []int64
}

// Change compares policies for tasks that wait: first the one that is in effect, then others.
// It shows the waits before retries, and how many tasks fall due in each minute. Tasks that
// are due already count in the first minute.
func Change(title, note string, policies []Policy, loads []LoadOf) Figure {
	f := Delays(policies...)
	f.Title, f.Note = title, note
	if plot, ok := f.Panels[0].(Plot); ok {
		plot.Height = 0
		f.Panels[0] = plot
	}
	last := 0
	for _, l := range loads {
		for i, n := range l.Minutes {
			if n > 0 {
				last = max(last, i)
			}
		}
	}
	last = max(last, 9)
	plot := Plot{Title: "Tasks that fall due per minute", X: Axis{Label: "from now", Unit: Seconds}, Y: Axis{Unit: Count}, Height: 130}
	for i, l := range loads {
		s := Series{Name: fmt.Sprintf("%s, %s due now", l.Policy, Number(float64(l.Due))), Style: Steps, Step: 60, Filled: i == 0}
		for k, n := range l.Minutes[:min(len(l.Minutes), last+1)] {
			if k == 0 {
				n += l.Due
			}
			s.Points = append(s.Points, Point{(time.Duration(k) * time.Minute).Seconds(), float64(n)})
		}
		plot.Series = append(plot.Series, s)
	}
	f.Panels = append(f.Panels, plot)
	return f
}
