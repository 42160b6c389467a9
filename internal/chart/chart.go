// Package chart draws falldue's pictures as SVG: for the command, for the pages of docs, for
// the benchmarks and for web pages.
//
// A [Figure] has a title and panels, which are [Plot] or [Bars]. [Delays], [Herd] and [Change]
// make the figures of policies. [Figure.Draw] gives each line and text of a figure its place,
// and [Drawing.SVG] writes the result. A program that makes another format walks the shapes
// of the [Drawing].
//
// Texts do not overlap, whatever sans-serif font a reader has: they have the room that the
// widest common fonts need. Series differ in their dashes and marks as well as in color.
package chart

import (
	"math"
	"strings"
)

// Figure is a picture: a title, a note below it, and panels one above the other.
type Figure struct {
	Title, Note string
	Panels      []Panel
}

// Panel is a part of a figure: a [Plot] or [Bars].
type Panel interface {
	// gutter returns the room that labels need left of the panel, of a width in all.
	gutter(width float64) float64
	// draw adds the panel to a drawing, from top on, with the gutter left of it. It returns
	// where the panel ends.
	draw(d *Drawing, top, gutter float64) float64
}

const (
	// Width is the usual width of a figure in pixels: on a phone with 360 pixels texts have
	// 10 pixels.
	Width = 440

	minWidth = 240
	padding  = 14 // around a figure
	spacing  = 14 // above a panel
)

// Draw gives all parts of the figure their places. The width is in pixels; less than 240 is
// taken for 240.
func (f Figure) Draw(width float64) Drawing {
	width = math.Round(max(width, minWidth))
	d := Drawing{Width: width, Title: clean(f.Title), Description: clean(f.Note)}
	y := d.lines(f.Title, padding, titleSize, Ink, 3)
	y = d.lines(f.Note, y, textSize, Faint, 6)
	gutter := 0.0
	for _, p := range f.Panels {
		gutter = max(gutter, p.gutter(width))
	}
	for _, p := range f.Panels {
		y = p.draw(&d, y+spacing, gutter)
	}
	d.Height = math.Ceil(y + padding)
	return d
}

// lines adds a text below y in as many lines as it needs, most at the most. It returns where
// the text ends.
func (d *Drawing) lines(text string, y, size float64, color Color, most int) float64 {
	for _, line := range wrap(text, size, d.Width-2*padding, most) {
		y += size * leading
		d.Shapes = append(d.Shapes, Text{At: Point{padding, y - size*descent}, Size: size, Color: color, Text: line, Full: clean(text)})
	}
	return y
}

// clean returns a text without characters that have no picture or change the order of others.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !shown(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
