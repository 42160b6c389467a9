package chart

import (
	"fmt"
	"slices"
	"time"
)

// HerdOf is a herd as a picture shows it: the retries of tasks that fail at the same time, and
// whose retries fail too.
type HerdOf struct {
	Policy string
	// Retries[i][k] is when retry k+1 of task i begins, after the failures.
	Retries [][]time.Duration
	// Bucket is the length of an interval, and Load the number of retries in each.
	Bucket time.Duration
	Load   []int
	// Steady is the load without the policy's jitter, or nil if it has none.
	Steady []int
}

const (
	// shownTasks is the greatest number of tasks whose retries are drawn one by one, and
	// shownRetries of the retries of a task.
	shownTasks, shownRetries = 100, 100
	dotHeight                = 2.6 // of a task, in pixels
)

// Herd shows when the tasks of herds run again, after the picture in ananthakumaran's
// "Visualization of backoff functions": a dot for each retry, and the load below.
func Herd(herds ...HerdOf) Figure {
	f := Figure{Title: "When tasks that failed together are retried"}
	for _, h := range herds {
		dots := h.dots()
		if len(herds) == 1 {
			f.Title = h.Policy
		} else {
			dots.Title = h.Policy
		}
		f.Note, f.Panels = h.note(), append(f.Panels, dots)
		if len(dots.Series) > 0 {
			f.Panels = append(f.Panels, h.load())
		}
	}
	return f
}

// each returns of how many tasks one is shown.
func (h HerdOf) each() int { return max(1, (len(h.Retries)+shownTasks-1)/shownTasks) }

// note says what the picture shows.
func (h HerdOf) note() string {
	note := "A task fails, and its retries fail too. Each dot is a retry"
	if n := len(h.Retries); n != 1 {
		note = Number(float64(n)) + " tasks fail at the same time, and their retries fail too. Each row is a task, each dot a retry"
	}
	if n := h.each(); n > 1 {
		note += fmt.Sprintf("; every %s task is shown", ordinal(n))
	}
	return note + "."
}

// end returns when the last interval ends.
func (h HerdOf) end() float64 {
	return (time.Duration(max(len(h.Load), len(h.Steady))) * h.Bucket).Seconds()
}

// dots has a series for the first retry of each task, one for the second, and so on.
func (h HerdOf) dots() Plot {
	each, retries := h.each(), 0
	for _, r := range h.Retries {
		retries = max(retries, len(r))
	}
	retries = min(retries, shownRetries)
	plot := Plot{
		X:      Axis{Unit: Seconds, To: h.end()},
		Y:      Axis{Unit: Count, To: float64(len(h.Retries) + 1)},
		Height: min(max(dotHeight*float64(len(h.Retries)/each), 40), 260),
		Empty:  "no retry: the policy gives up after the first failure",
	}
	for k := range retries {
		if k < series {
			plot.Series = append(plot.Series, Series{Style: Dots, Name: retryName(k, retries)})
		}
		s := &plot.Series[k%series]
		for i := 0; i < len(h.Retries); i += each {
			if k < len(h.Retries[i]) {
				s.Points = append(s.Points, Point{h.Retries[i][k].Seconds(), float64(i + 1)})
			}
		}
	}
	return plot
}

// retryName names the retries that have the same look as retry k+1, of a number.
func retryName(k, retries int) string {
	name := fmt.Sprintf("retry %d", k+1)
	if k+series < retries {
		name += fmt.Sprintf(", %d", k+series+1)
	}
	if k+2*series < retries {
		name += " …"
	}
	return name
}

// ordinal returns 2nd, 3rd and so on.
func ordinal(n int) string {
	ending := "th"
	if tens := n / 10 % 10; tens != 1 {
		ending = map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	}
	if ending == "" {
		ending = "th"
	}
	return Number(float64(n)) + ending
}

func (h HerdOf) load() Plot {
	plot := Plot{
		Title: fmt.Sprintf("Retries %s: %s", per(h.Bucket), loadText(h.Load)),
		X:     Axis{Label: "since the tasks failed", Unit: Seconds, To: h.end()}, Y: Axis{Unit: Count}, Height: 110,
		Series: []Series{{Name: "with jitter", Style: Steps, Filled: true, Color: Neutral, Step: h.Bucket.Seconds(), Points: h.points(h.Load)}},
	}
	if h.Steady != nil {
		plot.Title += "; without jitter " + loadText(h.Steady)
		steady := append(slices.Clone(h.Steady), make([]int, max(0, len(h.Load)-len(h.Steady)))...)
		plot.Series = append(plot.Series, Series{Name: "without jitter", Style: Steps, Color: Ink, Step: h.Bucket.Seconds(), Points: h.points(steady)})
	}
	return plot
}

// points returns the steps of a load.
func (h HerdOf) points(load []int) (list []Point) {
	for i, n := range load {
		list = append(list, Point{(time.Duration(i) * h.Bucket).Seconds(), float64(n)})
	}
	return list
}

// loadText says how great the load is, and for what part of the time there is none.
func loadText(load []int) string {
	idle := 0
	for _, n := range load {
		if n == 0 {
			idle++
		}
	}
	if len(load) == 0 {
		return "none"
	}
	return fmt.Sprintf("at most %s, idle %.0f%% of the time", Number(float64(slices.Max(load))), 100*float64(idle)/float64(len(load)))
}

// per says of what interval a number is.
func per(d time.Duration) string {
	switch d {
	case time.Second:
		return "per second"
	case time.Minute:
		return "per minute"
	case time.Hour:
		return "per hour"
	}
	return "in " + Duration(d)
}
