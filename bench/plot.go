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

// rates lists the measures in tasks per second.
func (r results) rates() (names []string) {
	for _, m := range measures {
		if _, ok := r.of(m.name, "falldue"); ok && m.unit == "tasks/s" {
			names = append(names, m.name)
		}
	}
	return names
}

// plotRates draws tasks per second: a group of bars for each measure. A bar is the
// median, with a line from the smallest to the largest value.
func plotRates(path, title string, all results) error {
	names := all.rates()
	p := plot.New()
	p.Title.Text, p.Y.Min, p.Legend.Top = "Tasks per second, "+title, 0, true
	p.Add(horizontal())
	shown := slices.DeleteFunc(all.systems(), func(s string) bool {
		return !slices.ContainsFunc(names, func(m string) bool { _, ok := all.of(m, s); return ok })
	})
	var groups plot.ConstantTicks
	group := float64(len(shown) + 1) // bars and a gap
	for i, name := range names {
		groups = append(groups, plot.Tick{Value: group*float64(i) + float64(len(shown)-1)/2, Label: name})
	}
	for i, system := range shown {
		var bars errorBars
		for j, name := range names {
			r, ok := all.of(name, system)
			if !ok {
				continue
			}
			x := group*float64(j) + float64(i)
			bar, err := plotter.NewBarChart(plotter.Values{r.Median}, vg.Points(12))
			if err != nil {
				return err
			}
			bar.XMin, bar.Color, bar.LineStyle.Width = x, plotutil.SoftColors[i%len(plotutil.SoftColors)], 0
			p.Add(bar)
			if len(bars.XYs) == 0 {
				p.Legend.Add(system, bar)
			}
			bars.XYs = append(bars.XYs, plotter.XY{X: x, Y: r.Median})
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{r.Median - r.Min, r.Max - r.Median})
		}
		lines, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return err
		}
		lines.CapWidth = vg.Points(4)
		p.Add(lines)
	}
	p.X.Tick.Marker, p.X.Tick.Label.Font.Size, p.X.Tick.Length = groups, vg.Points(9), 0
	p.X.Min, p.X.Max, p.Y.Max = -1, group*float64(len(names)), p.Y.Max*1.2 // the legend is on top
	p.Y.Tick.Marker = thousands{}
	return p.Save(vg.Points(100+float64(len(names))*group*14), vg.Points(320), path)
}

// errorBars holds medians, each with its distance to the smallest and the largest
// value.
type errorBars struct {
	plotter.XYs
	plotter.YErrors
}

// horizontal returns a grid of horizontal lines.
func horizontal() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{220}
	return grid
}

// thousands labels an axis with numbers such as 120,000.
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

// claims returns the results of claim_ms by system, as pairs of waiting tasks and
// milliseconds.
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

// plotClaims draws the time of a claim over the number of waiting tasks.
func plotClaims(path, title string, all results) error {
	p := plot.New()
	p.Title.Text = "Milliseconds per claim of 100, " + title
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
		for _, xy := range points { // a logarithmic axis needs room around all points
			p.Y.Min, p.Y.Max = min(p.Y.Min, xy.Y/2), max(p.Y.Max, xy.Y*2)
		}
	}
	return p.Save(vg.Points(480), vg.Points(320), path)
}
