package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

// drawPreviews draws the wait before each retry under policies, with the bands of their
// jitters.
func drawPreviews(previews []preview) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Wait before a retry"
	p.X.Label.Text = "failures"
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	p.Y.Tick.Marker = durationTicks{}
	p.Add(plotter.NewGrid())
	shortest, longest := time.Duration(math.MaxInt64), time.Duration(0)
	for i, preview := range previews {
		line, band := make(plotter.XYs, len(preview.Retries)), make(plotter.XYs, 2*len(preview.Retries))
		for k, r := range preview.Retries {
			n := float64(r.N)
			line[k] = plotter.XY{X: n, Y: r.Delay.Seconds()}
			band[k] = line[k]
			band[len(band)-1-k] = plotter.XY{X: n, Y: (r.Delay + r.Jitter).Seconds()}
			shortest, longest = min(shortest, r.Delay), max(longest, r.Delay+r.Jitter)
		}
		if len(line) == 0 {
			continue
		}
		area, err := plotter.NewPolygon(band)
		if err != nil {
			return nil, err
		}
		area.Color, area.Width = faint(plotutil.Color(i)), 0
		lower, marks, err := plotter.NewLinePoints(line)
		if err != nil {
			return nil, err
		}
		lower.Color, lower.Width, marks.Color, marks.Shape, marks.Radius = plotutil.Color(i), vg.Points(1.5), plotutil.Color(i), draw.CircleGlyph{}, vg.Points(1.5)
		p.Add(area, lower, marks)
		p.Legend.Add(preview.text, lower)
	}
	p.Y.Min = 0
	if shortest > 0 && longest/100 > shortest {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logDurationTicks{}
		p.Y.Min, p.Y.Max = shortest.Seconds()/1.5, longest.Seconds()*1.5
	}
	return p, nil
}

// maxDots is about the greatest number of retries that are drawn one by one.
const maxDots = 20_000

// drawHerd draws the retries of tasks that failed at the same time, with the jitter and
// without: a dot for each, coloured by its number, and below the load.
func drawHerd(h herds) ([][]*plot.Plot, error) {
	var dots, loads []*plot.Plot
	var end float64
	for _, part := range []struct {
		title string
		ops.Herd
	}{{h.policy + ", with jitter", h.with}, {"without jitter", h.without}} {
		above, err := drawDots(part.title, part.Herd)
		if err != nil {
			return nil, err
		}
		below, err := drawLoad(part.Herd)
		if err != nil {
			return nil, err
		}
		end = max(end, above.X.Max, below.X.Max)
		dots, loads = append(dots, above), append(loads, below)
	}
	for _, p := range slices.Concat(dots, loads) { // so that they can be compared
		p.X.Min, p.X.Max = 0, end*legendShare
	}
	most := max(loads[0].Y.Max, loads[1].Y.Max)
	loads[0].Y.Max, loads[1].Y.Max = most, most
	return [][]*plot.Plot{dots, loads}, nil
}

// legendShare is how much wider the plots of a herd are than its retries, for the legend.
const legendShare = 1.3

func drawDots(title string, h ops.Herd) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, "task"
	p.X.Tick.Marker = durationTicks{}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	byRetry := []plotter.XYs{}
	each := max(1, len(h.All())/maxDots)
	for i := 0; i < len(h.Retries); i += each {
		for k, at := range h.Retries[i] {
			if k == len(byRetry) {
				byRetry = append(byRetry, nil)
			}
			byRetry[k] = append(byRetry[k], plotter.XY{X: at.Seconds(), Y: float64(i + 1)})
		}
	}
	for k, points := range byRetry {
		s, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		s.Color, s.Shape, s.Radius = plotutil.Color(k), draw.CircleGlyph{}, vg.Points(1.5)
		p.Add(s)
		if k < len(plotutil.DefaultColors) {
			name := fmt.Sprintf("retry %d", k+1)
			if len(byRetry) > k+len(plotutil.DefaultColors) {
				name += fmt.Sprintf(", %d …", k+1+len(plotutil.DefaultColors))
			}
			p.Legend.Add(name, s)
		}
	}
	return p, nil
}

func drawLoad(h ops.Herd) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("peak %s, idle %s", peakOf(h), idleOf(h))
	p.Y.Label.Text, p.X.Label.Text = "retries in "+words.Span(h.Bucket), "after the failures"
	p.X.Tick.Marker, p.Y.Tick.Marker = durationTicks{}, countTicks{}
	steps := make(plotter.XYs, 0, len(h.Load)+1)
	for i, n := range h.Load {
		steps = append(steps, plotter.XY{X: (time.Duration(i) * h.Bucket).Seconds(), Y: float64(n)})
	}
	steps = append(steps, plotter.XY{X: (time.Duration(len(h.Load)) * h.Bucket).Seconds()})
	line, err := plotter.NewLine(steps)
	if err != nil {
		return nil, err
	}
	line.StepStyle, line.Color, line.FillColor = plotter.PostStep, color.Gray{0x60}, color.Gray{0xd0}
	p.Add(line)
	p.Y.Min = 0
	return p, nil
}
