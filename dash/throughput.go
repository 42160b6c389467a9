package dash

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

// shownMinutes is how many minutes a chart of throughput shows. An hour has one minute more, but its first minute is
// incomplete.
const shownMinutes = 59

// throughput is how runs have ended in the last hour.
type throughput struct {
	Charts []template.HTML
	Rows   []ops.Span // newest first
	Now    time.Time
	Age    time.Duration
}

// now returns the time of the database's clock, as far as a pulse knows it.
func (h *Handler) now(p reading[ops.Pulse]) time.Time {
	if !p.Known {
		return time.Time{}
	}
	return p.Value.At.Add(p.Age)
}

// byMinute adds up the spans of each of the last minutes before now, the oldest first. A minute without a run has
// a span without runs.
func byMinute(spans []ops.Span, now time.Time) []ops.Span {
	last := now.Truncate(time.Minute)
	list := make([]ops.Span, shownMinutes)
	for i := range list {
		list[i].At = last.Add(time.Duration(i-shownMinutes) * time.Minute)
	}
	for _, s := range spans {
		i := shownMinutes - int(last.Sub(s.At)/time.Minute)
		if i < 0 || i >= shownMinutes || !s.At.Before(last) {
			continue
		}
		m := &list[i]
		m.Started, m.Done, m.Failed, m.Dead = m.Started+s.Started, m.Done+s.Done, m.Failed+s.Failed, m.Dead+s.Dead
		m.Snoozed, m.Cancelled, m.Lost, m.Expired = m.Snoozed+s.Snoozed, m.Cancelled+s.Cancelled, m.Lost+s.Lost, m.Expired+s.Expired
		m.Run, m.Lag = m.Run.Add(s.Run), m.Lag.Add(s.Lag)
		if s.Measured {
			m.Measured, m.Waiting, m.DeadNow, m.OldestDue = true, m.Waiting+s.Waiting, m.DeadNow+s.DeadNow, max(m.OldestDue, s.OldestDue)
		}
	}
	// Workers write the last minute some seconds after its end, so it may be missing.
	if m := list[shownMinutes-1]; m.Started+m.Ended() == 0 && !m.Measured {
		list = list[:shownMinutes-1]
	}
	return list
}

// spark is a small chart of the tasks of a queue done in each minute of the last hour, with words for screen readers.
// It is empty if no task was done.
func spark(spans []ops.Span, queue string, now time.Time) template.HTML {
	var list []ops.Span
	for _, s := range spans {
		if s.Queue == queue {
			list = append(list, s)
		}
	}
	if now.IsZero() || len(list) == 0 {
		return ""
	}
	var most, total int64
	minutes := byMinute(list, now)
	for _, m := range minutes {
		most, total = max(most, m.Done), total+m.Done
	}
	if most == 0 {
		return ""
	}
	const width, height = 120.0, 24.0
	points := make([]string, len(minutes))
	for i, m := range minutes {
		points[i] = fmt.Sprintf("%.1f,%.1f", width*float64(i)/float64(shownMinutes-1), height-1-(height-2)*float64(m.Done)/float64(most))
	}
	label := fmt.Sprintf("%s done in the last hour, up to %s a minute", words.Number(total), words.Number(most))
	return template.HTML(fmt.Sprintf(`<svg class="spark" viewBox="0 0 %g %g" role="img" aria-label="%s"><title>%s</title><polyline points="%s"/></svg> <span class="hint">%s</span>`, //nolint:gosec,gocritic // only numbers, and HTML has quotes of its own
		width, height, label, label, strings.Join(points, " "), label))
}

// outcomes are the outcomes of runs as a chart shows them, from the bottom up.
var outcomes = []struct {
	name  string
	color chart.Color
	of    func(ops.Span) int64
}{
	{"done", chart.Series1, func(s ops.Span) int64 { return s.Done }},
	{"failed", chart.Series2, func(s ops.Span) int64 { return s.Failed }},
	{"dead", chart.Series3, func(s ops.Span) int64 { return s.Dead }},
	{"other", chart.Series4, func(s ops.Span) int64 { return s.Snoozed + s.Cancelled + s.Lost + s.Expired }},
}

// throughputOf draws the last hour: runs by outcome, the number of waiting tasks, and how long the oldest due task had
// waited.
func throughputOf(minutes reading[[]ops.Span], p ops.Pulse, now time.Time) (t throughput) {
	if now.IsZero() || !slices.ContainsFunc(minutes.Value, func(s ops.Span) bool { return s.Started+s.Ended() > 0 || s.Measured }) {
		return t
	}
	list := byMinute(minutes.Value, now)
	axis := chart.Axis{Unit: chart.Clock, From: float64(list[0].At.Unix()), To: float64(now.Unix())}
	oldest, waiting := chart.Series{Name: "oldest due", Color: chart.Series2, Filled: true}, chart.Series{Name: "waiting", Filled: true}
	for _, m := range list {
		end, due, tasks := float64(m.At.Add(time.Minute).Unix()), math.NaN(), math.NaN()
		if m.Measured {
			due, tasks = m.OldestDue.Seconds(), float64(m.Waiting)
		}
		oldest.Points, waiting.Points = append(oldest.Points, chart.Point{X: end, Y: due}), append(waiting.Points, chart.Point{X: end, Y: tasks})
	}
	if first, ok := p.First(); ok { // the pulse is newer than the history
		oldest.Points = append(oldest.Points, chart.Point{X: float64(p.At.Unix()), Y: max(p.At.Sub(first.FirstDue), 0).Seconds()})
	}
	var series []chart.Series
	for i, o := range outcomes {
		one := chart.Series{Name: o.name, Color: o.color, Style: chart.Steps, Step: 60, Filled: true}
		some := i == 0
		for _, m := range list {
			n := o.of(m)
			some = some || n > 0
			one.Points = append(one.Points, chart.Point{X: float64(m.At.Unix()), Y: float64(n)})
		}
		if some {
			series = append(series, one)
		}
	}
	plots := []chart.Plot{
		{Title: "Runs per minute, by outcome", X: axis, Y: chart.Axis{Unit: chart.Numbers}, Series: series, Stacked: true},
		{Title: "How long the oldest due task has waited", X: axis, Y: chart.Axis{Unit: chart.Seconds}, Series: []chart.Series{oldest}},
		{Title: "Waiting and running tasks", X: axis, Y: chart.Axis{Unit: chart.Count}, Series: []chart.Series{waiting}},
	}
	const height = 210 // of each picture, so that their axes are on one line
	for _, plot := range plots {
		plot.Height = 100
		plot.Height += height - chart.Figure{Panels: []chart.Panel{plot}}.Draw(chart.Width).Height
		t.Charts = append(t.Charts, svg(plot.Title, chart.Figure{Panels: []chart.Panel{plot}}))
	}
	for _, m := range slices.Backward(list) {
		if m.Started+m.Ended() > 0 || m.Measured {
			t.Rows = append(t.Rows, m)
		}
	}
	t.Now, t.Age = now, minutes.Age
	return t
}
