package main

import (
	"image/color"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// plotRates draws tasks a second, a group of bars for each measure.
func plotRates(path, title string, all results) error {
	var names []string
	for _, m := range measures {
		if _, ok := all.of(m.name, "falldue"); ok && m.unit == "tasks/s" {
			names = append(names, m.name)
		}
	}
	p := plot.New()
	p.Title.Text = "Tasks a second, " + title
	p.Y.Min, p.Legend.Top = 0, true
	p.Add(horizontal())
	width := vg.Points(11)
	shown := slices.DeleteFunc(all.systems(), func(s string) bool {
		return !slices.ContainsFunc(names, func(m string) bool { _, ok := all.of(m, s); return ok })
	})
	for i, system := range shown {
		values := make(plotter.Values, len(names))
		for j, name := range names {
			if r, ok := all.of(name, system); ok {
				values[j] = r.Median
			}
		}
		if len(values) == 0 {
			return nil
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = plotutil.SoftColors[i%len(plotutil.SoftColors)], 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(shown)-1)/2)
		p.Add(bars)
		p.Legend.Add(system, bars)
	}
	p.NominalX(names...)
	p.X.Tick.Label.Font.Size = vg.Points(9)
	p.Y.Tick.Marker = thousands{}
	return p.Save(vg.Points(float64(120+100*max(len(names), 4))), vg.Points(320), path)
}

// horizontal is a grid of horizontal lines.
func horizontal() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{220}
	return grid
}

// thousands marks an axis with numbers such as 120,000.
type thousands struct{}

func (thousands) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = number(t.Value)
		}
	}
	return ticks
}

// claims finds the results of claim_ms, by system: rows waiting, milliseconds.
func (r results) claims() map[string]plotter.XYs {
	found := map[string]plotter.XYs{}
	for _, x := range r {
		rest, ok := strings.CutPrefix(x.Measure, "claim_ms_")
		n, err := strconv.Atoi(rest)
		if ok && err == nil {
			found[x.System] = append(found[x.System], plotter.XY{X: float64(n), Y: x.Median})
		}
	}
	return found
}

// plotClaims draws how long a claim takes beside more and more waiting tasks.
func plotClaims(path, title string, all results) error {
	p := plot.New()
	p.Title.Text = "Milliseconds a claim of 100, " + title
	p.X.Label.Text = "tasks waiting"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	claims := all.claims()
	for i, system := range all.systems() {
		points := claims[system]
		if len(points) == 0 {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, marks.Color, line.Width = plotutil.Color(i), plotutil.Color(i), vg.Points(1.5)
		marks.Shape = plotutil.Shape(i)
		p.Add(line, marks)
		p.Legend.Add(system, line, marks)
		for _, xy := range points { // so that logarithms have room for all
			p.Y.Min, p.Y.Max = min(p.Y.Min, xy.Y/2), max(p.Y.Max, xy.Y*2)
		}
	}
	return p.Save(vg.Points(480), vg.Points(320), path)
}
