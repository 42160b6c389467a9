package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/falldue/falldue/internal/chart"
)

// saveFigure draws a figure into an SVG file.
func saveFigure(path string, f chart.Figure) error {
	return os.WriteFile(path, []byte(f.Draw(chart.Width).SVG(chart.Auto)), 0o644)
}

// rates lists the measures in tasks per second.
func (r results) rates() (names []string) {
	for _, m := range measures {
		if _, ok := r.of(m.name, "falldue"); ok && m.unit == "tasks/s" {
			names = append(names, m.name)
		}
	}
	return names
}

// drawRates draws tasks per second: a group of bars for each measure, with their ratios to
// raw. A bar is the median, with a line from the smallest to the largest value.
func drawRates(title string, all results) chart.Figure {
	f := chart.Figure{Title: "Tasks per second, " + title, Note: "Medians"}
	var bars chart.Bars
	ranges, ratios := false, false
	for _, name := range all.rates() {
		group := chart.Group{Name: name}
		base, compared := all.of(name, "raw")
		for _, system := range all.systems() {
			r, ok := all.of(name, system)
			if !ok {
				continue
			}
			bar := chart.Bar{Name: system, Value: r.Median, Min: r.Min, Max: r.Max, Color: colorOf(system)}
			if compared && system != base.System {
				bar.Note, ratios = fmt.Sprintf("%.2f of raw", r.Median/base.Median), true
			}
			ranges = ranges || r.Max > r.Min
			group.Bars = append(group.Bars, bar)
		}
		bars.Groups = append(bars.Groups, group)
	}
	if !slices.ContainsFunc(bars.Groups, func(g chart.Group) bool { return len(g.Bars) > 1 }) {
		bars.Groups = []chart.Group{onlyGroup(bars.Groups)}
	} else {
		f.Note += "; each group has a scale of its own"
	}
	if ranges {
		f.Note += "; a line goes from the smallest to the largest of several rounds"
	}
	if ratios {
		f.Note += "; ratios are to raw, the database by itself"
	}
	f.Note += "."
	f.Panels = []chart.Panel{bars}
	return f
}

// colorOf returns a color for falldue, one for what it is compared with, and one for other
// queues.
func colorOf(system string) chart.Color {
	switch {
	case system == "raw":
		return chart.Neutral
	case strings.HasPrefix(system, "falldue"):
		return chart.Series1
	}
	return chart.Series2
}

// onlyGroup makes groups of one bar each, all of one system, a group of that system.
func onlyGroup(groups []chart.Group) (all chart.Group) {
	for _, g := range groups {
		bar := g.Bars[0]
		all.Name, bar.Name = bar.Name, g.Name
		all.Bars = append(all.Bars, bar)
	}
	return all
}

// claims returns the results of claim_ms by system, as pairs of waiting tasks and seconds.
func (r results) claims() map[string][]chart.Point {
	found := map[string][]chart.Point{}
	for _, x := range r {
		rest, ok := strings.CutPrefix(x.Measure, "claim_ms_")
		n, err := strconv.Atoi(rest)
		if ok && err == nil {
			found[x.System] = append(found[x.System], chart.Point{X: float64(n), Y: x.Median / 1000})
		}
	}
	for _, points := range found {
		slices.SortFunc(points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	}
	return found
}

// drawClaims draws the time of a claim over the number of waiting tasks.
func drawClaims(title string, all results) chart.Figure {
	plot := chart.Plot{X: chart.Axis{Label: "waiting tasks", Log: true}, Y: chart.Axis{Unit: chart.Seconds, Log: true}, Height: 200}
	claims := all.claims()
	for _, system := range all.systems() {
		if points := claims[system]; len(points) > 0 {
			plot.Series = append(plot.Series, chart.Series{Name: system, Points: points})
		}
	}
	return chart.Figure{Title: "Time of a claim of 100 tasks, " + title, Panels: []chart.Panel{plot}}
}
