// Command life prints the picture of docs/concepts.md: the phases of a task, and what leads from one
// to the next.
package main

import (
	"fmt"

	"github.com/falldue/falldue/internal/chart"
)

func main() { fmt.Print(life().SVG(chart.Auto)) }

// Lengths in pixels. Texts of this size are readable on a phone.
const (
	left, center, right = 71.0, 220.0, 369.0 // columns
	boxWidth, boxHeight = 110.0, 30.0
	textSize            = 13.0
)

// picture is a drawing in the making.
type picture struct{ chart.Drawing }

func life() chart.Drawing {
	p := picture{chart.Drawing{
		Width: chart.Width, Height: 374, Title: "The life of a task",
		Description: "An enqueued task is blocked until its dependencies are done, or scheduled until its time comes. " +
			"Then it is due. A worker claims it, and it is running. After an error it is backing off, and after Snooze it is snoozed; " +
			"then it is due again. In the end it is done, dead or cancelled.",
	}}
	p.text(center, 18, "enqueued")
	p.arrow(chart.Point{X: center, Y: 24}, chart.Point{X: center, Y: 48})
	p.box(left, 48, "blocked", chart.Series1)
	p.box(center, 48, "scheduled", chart.Series1)
	p.arrow(chart.Point{X: left + boxWidth/2, Y: 63}, chart.Point{X: center - boxWidth/2, Y: 63})
	p.text(left, 95, "has dependencies")

	p.arrow(chart.Point{X: center, Y: 78}, chart.Point{X: center, Y: 128})
	p.label(center+9, 107, "its time comes")
	p.box(center, 128, "due", chart.Series1)
	p.arrow(chart.Point{X: center, Y: 158}, chart.Point{X: center, Y: 226})
	p.label(center+9, 196, "claimed")
	p.box(center, 226, "running", chart.Series2)

	for _, side := range []struct {
		x, edge    float64
		name       string
		into, back string
	}{
		{left, center - boxWidth/2, "backing_off", "error", "delay ends"},
		{right, center + boxWidth/2, "snoozed", "Snooze", "time comes"},
	} {
		p.box(side.x, 177, side.name, chart.Series1)
		p.arrow(chart.Point{X: side.edge, Y: 241}, chart.Point{X: side.x, Y: 241}, chart.Point{X: side.x, Y: 207})
		p.text((side.edge+side.x)/2, 258, side.into)
		p.arrow(chart.Point{X: side.x, Y: 177}, chart.Point{X: side.x, Y: 143}, chart.Point{X: side.edge, Y: 143})
		p.text((side.edge+side.x)/2, 133, side.back)
	}

	for _, end := range []struct {
		x    float64
		name string
		why  string
		col  chart.Color
	}{
		{left, "done", "handler succeeded", chart.Series5},
		{center, "dead", "no attempt left", chart.Series3},
		{right, "cancelled", "Cancel", chart.Neutral},
	} {
		p.arrow(chart.Point{X: center, Y: 256}, chart.Point{X: center, Y: 284}, chart.Point{X: end.x, Y: 284}, chart.Point{X: end.x, Y: 316})
		p.box(end.x, 316, end.name, end.col)
		p.text(end.x, 364, end.why)
	}
	return p.Drawing
}

// box draws a phase: a frame with its name.
func (p *picture) box(x, top float64, name string, c chart.Color) {
	l, r, bottom := x-boxWidth/2, x+boxWidth/2, top+boxHeight
	p.Shapes = append(
		p.Shapes,
		chart.Path{Lines: [][]chart.Point{{{X: l, Y: top}, {X: r, Y: top}, {X: r, Y: bottom}, {X: l, Y: bottom}, {X: l, Y: top}}}, Stroke: c, Width: 1.6},
		chart.Text{At: chart.Point{X: x, Y: top + 20}, Anchor: chart.Middle, Size: textSize, Color: chart.Ink, Text: name},
	)
}

// arrow draws a line through points with a tip at the last one.
func (p *picture) arrow(points ...chart.Point) {
	const size = 5.0
	end, before := points[len(points)-1], points[len(points)-2]
	tip := []chart.Point{end}
	switch {
	case end.X > before.X:
		tip = append(tip, chart.Point{X: end.X - 2*size, Y: end.Y - size}, chart.Point{X: end.X - 2*size, Y: end.Y + size})
	case end.X < before.X:
		tip = append(tip, chart.Point{X: end.X + 2*size, Y: end.Y - size}, chart.Point{X: end.X + 2*size, Y: end.Y + size})
	case end.Y > before.Y:
		tip = append(tip, chart.Point{X: end.X - size, Y: end.Y - 2*size}, chart.Point{X: end.X + size, Y: end.Y - 2*size})
	default:
		tip = append(tip, chart.Point{X: end.X - size, Y: end.Y + 2*size}, chart.Point{X: end.X + size, Y: end.Y + 2*size})
	}
	p.Shapes = append(
		p.Shapes,
		chart.Path{Lines: [][]chart.Point{points}, Stroke: chart.Faint, Width: 1.2},
		chart.Path{Lines: [][]chart.Point{tip}, Fill: chart.Faint},
	)
}

// text draws a text in the middle of x.
func (p *picture) text(x, y float64, text string) { p.add(x, y, chart.Middle, text) }

// label draws a text that begins at x.
func (p *picture) label(x, y float64, text string) { p.add(x, y, chart.Start, text) }

func (p *picture) add(x, y float64, anchor chart.Anchor, text string) {
	p.Shapes = append(p.Shapes, chart.Text{At: chart.Point{X: x, Y: y}, Anchor: anchor, Size: textSize, Color: chart.Faint, Text: text})
}
