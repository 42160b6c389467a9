// Package charttest has figures that are hard to draw, and finds what has no room in a drawing.
package charttest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/chart"
)

// Widths are the widths in pixels that figures are tried at.
var Widths = []float64{240, 360, chart.Width, 600, 1200}

const hostile = "<script>alert('1')</script> & \"quotes\" \u202eright to left\x00 \xff 汉字 🐎"

// Figures returns figures by their names.
func Figures() map[string]chart.Figure {
	long := strings.Repeat("min(1h, 15s + n^4) + ", 40) + "1s"
	arctan := policy("arctan", 25, func(n float64) float64 { return 55020 * math.Atan(n*n*n/15) }, 0, 86400)
	figures := map[string]chart.Figure{
		"no policy":          chart.Delays(),
		"no retry":           chart.Delays(chart.Policy{Name: "delay 1m; attempts 1", End: "Given up after 1 attempt"}),
		"one retry":          chart.Delays(policy("1h", 1, func(float64) float64 { return 3600 }, 0, 3600)),
		"no wait":            chart.Delays(policy("0s", 25, func(float64) float64 { return 0 }, 0, 0)),
		"a limit":            chart.Delays(arctan),
		"the longest waits":  chart.Delays(policy("36500d", 25, func(float64) float64 { return 36500 * 86400 }, 0, 0)),
		"a thousand retries": chart.Delays(policy("15s + n^4", 1000, func(n float64) float64 { return 15 + n*n*n*n }, 30, 0)),
		"a long formula":     chart.Delays(policy(long, 25, func(n float64) float64 { return 15 + n*n }, 30, 0)),
		"hostile names":      chart.Delays(policy(hostile, 3, func(n float64) float64 { return n }, 0, 3), policy(long, 4, func(n float64) float64 { return 9 * n }, 1, 36)),
		"no herd":            chart.Herd(),
		"a herd given up":    chart.Herd(chart.HerdOf{Policy: "delay 1m; attempts 1", Retries: make([][]time.Duration, 100), Bucket: time.Minute, Load: []int{0}}),
		"a herd of one":      chart.Herd(herd("1s", 1, 1, time.Minute)),
		"a herd":             chart.Herd(herd("visualization_sidekiq", 100, 5, time.Minute)),
		"a large herd":       chart.Herd(herd("zizq", 30_000, 25, time.Second), herd(hostile, 7, 60, time.Hour)),
		"a change":           change(),
		"bars":               bars("drain_kept", "falldue", "falldue-default", "raw"),
		"hostile bars":       bars(long, hostile, long, ""),
		"one bar":            {Title: "One", Panels: []chart.Panel{chart.Bars{Groups: []chart.Group{{Bars: []chart.Bar{{Name: "only", Value: 0}}}}}}},
		"two hours":          hours(),
		"powers":             powers(),
		"out of range":       outOfRange(),
	}
	var limits []chart.Policy
	for i := range 6 {
		limit := float64(3600 * (i + 1))
		limits = append(limits, policy(fmt.Sprintf("limit %d h", i+1), 25, func(n float64) float64 { return limit * n / (n + 1) }, 60, limit))
	}
	figures["many limits"] = chart.Delays(limits...)
	return figures
}

func policy(name string, retries int, delay func(n float64) float64, jitter, limit float64) chart.Policy {
	seconds := func(s float64) time.Duration { return time.Duration(min(s*1e9, math.MaxInt64/2)) }
	p := chart.Policy{Name: name, End: "Not given up after 25 retries", Limit: chart.Wait{Shortest: seconds(limit), Longest: seconds(limit + jitter)}}
	for n := range retries {
		d := delay(float64(n + 1))
		p.Waits = append(p.Waits, chart.Wait{Shortest: seconds(d), Longest: seconds(d + jitter)})
	}
	return p
}

// herd makes a herd of tasks whose retries are spread by some rule without chance.
func herd(name string, tasks, retries int, bucket time.Duration) chart.HerdOf {
	h := chart.HerdOf{Policy: name, Bucket: bucket, Steady: []int{tasks, 0, tasks}}
	for i := range tasks {
		var list []time.Duration
		for k := range retries {
			at := time.Duration(k*k)*bucket + time.Duration(i*7919%1000*(k+1))*bucket/1000
			for len(h.Load) <= int(at/bucket) {
				h.Load = append(h.Load, 0)
			}
			h.Load[at/bucket]++
			list = append(list, at)
		}
		h.Retries = append(h.Retries, list)
	}
	return h
}

func change() chart.Figure {
	before, after := make([]int64, 240), make([]int64, 240)
	for i := range before {
		before[i], after[i/4] = int64(i%30), after[i/4]+int64(i%30)
	}
	return chart.Change("invoice.send", "600 tasks of this kind wait. Under 12m, 480 would be due immediately, 120 sooner, 0 later.",
		[]chart.Policy{policy("now: delay 2h", 25, func(float64) float64 { return 7200 }, 0, 7200), policy("12m", 25, func(float64) float64 { return 720 }, 0, 720)},
		[]chart.LoadOf{{Policy: "now: delay 2h", Minutes: before}, {Policy: "12m", Due: 480, Minutes: after}})
}

func bars(group string, names ...string) chart.Figure {
	b := chart.Bars{Title: "Tasks per second"}
	for range 2 {
		g := chart.Group{Name: group}
		for i, name := range names {
			value := 123_456.0 / float64(i*i+1)
			g.Bars = append(g.Bars, chart.Bar{Name: name, Value: value, Min: value * 0.7, Max: value * 1.1, Note: "0.62 of raw"})
		}
		b.Groups = append(b.Groups, g)
	}
	return chart.Figure{Title: group, Note: group, Panels: []chart.Panel{b}}
}

// hours has two hours of throughput by outcome, and the age of the oldest task that is due.
func hours() chart.Figure {
	const begin, minutes = 1_796_979_720, 120
	done, failed := chart.Series{Name: "done", Style: chart.Steps, Step: 60, Filled: true, Unfinished: true}, chart.Series{Name: "failed", Style: chart.Steps, Step: 60, Filled: true, Unfinished: true}
	oldest := chart.Series{Name: "oldest due", Unfinished: true}
	for i := range minutes {
		at := float64(begin + 60*i)
		done.Points = append(done.Points, chart.Point{X: at, Y: 600 + 200*math.Sin(float64(i)/9)})
		failed.Points = append(failed.Points, chart.Point{X: at, Y: float64(i % 40)})
		y := 0.02 * math.Exp(float64(i%60)/8)
		if i/10 == 5 {
			y = math.NaN() // a gap
		}
		oldest.Points = append(oldest.Points, chart.Point{X: at, Y: y})
	}
	x := chart.Axis{Unit: chart.Clock, From: begin, To: begin + 60*minutes}
	return chart.Figure{Title: "The last two hours", Panels: []chart.Panel{
		chart.Plot{Title: "Tasks per minute", X: x, Series: []chart.Series{done, failed}, Stacked: true},
		chart.Plot{Title: "Age of the oldest task that is due", X: x, Y: chart.Axis{Unit: chart.Seconds, Log: true}, Series: []chart.Series{oldest}},
		chart.Plot{Title: "Dead tasks", X: x, Empty: "none"},
	}}
}

// powers has numbers of many sizes on both axes.
func powers() chart.Figure {
	s := chart.Series{Name: "naive"}
	for i := range 9 {
		s.Points = append(s.Points, chart.Point{X: math.Pow10(i), Y: math.Pow10(i - 4)})
	}
	axis := chart.Axis{Unit: chart.Numbers, Log: true}
	return chart.Figure{Title: "Powers", Panels: []chart.Panel{chart.Plot{X: axis, Y: axis, Series: []chart.Series{s, s}}}}
}

// outOfRange has points outside its axis, a gap, and a point between two gaps.
func outOfRange() chart.Figure {
	s := chart.Series{Name: "rows"}
	for i := range 100 {
		y := float64(i * i)
		if i == 40 || i == 42 {
			y = math.Inf(1)
		}
		s.Points = append(s.Points, chart.Point{X: float64(i), Y: y})
	}
	return chart.Figure{Title: "Out of range", Panels: []chart.Panel{chart.Plot{X: chart.Axis{From: 20, To: 60}, Y: chart.Axis{From: 100, To: 2000}, Series: []chart.Series{s}}}}
}
