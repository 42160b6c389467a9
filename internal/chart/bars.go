package chart

import (
	"cmp"
	"strings"
)

// Bars compares values by bars that lie one below the other. The bars of a group have a scale
// of their own, from 0 to its greatest value. Each says its name and its value.
type Bars struct {
	Title  string
	Groups []Group
	Unit   string // follows each value, such as " MB"
}

// Group is a group of bars.
type Group struct {
	Name string
	Bars []Bar
}

// Bar is a value, and the smallest and the greatest that were measured.
type Bar struct {
	Name            string
	Value, Min, Max float64
	Note            string // follows the value, such as a ratio
	Color           Color  // defaults to the first of a series
}

const (
	barHeight   = 11
	barDistance = textSize*leading + 1
	groupGap    = 8
)

// gutter has the names of bars, up to four ninths of the width.
func (b Bars) gutter(width float64) float64 {
	widest := 0.0
	for _, g := range b.Groups {
		for _, bar := range g.Bars {
			widest = max(widest, TextWidth(clean(bar.Name), textSize))
		}
	}
	return padding + min(widest, width*4/9) + tickGap
}

// value is the text after a bar.
func (b Bars) value(bar Bar) string {
	text := Number(bar.Value) + b.Unit
	if bar.Note != "" {
		text += " · " + bar.Note
	}
	return text
}

func (b Bars) draw(d *Drawing, top, gutter float64) float64 {
	y := d.lines(b.Title, top, textSize, Ink, 3)
	widest := 0.0
	for _, g := range b.Groups {
		for _, bar := range g.Bars {
			widest = max(widest, TextWidth(b.value(bar), textSize))
		}
	}
	left := gutter
	right := max(d.Width-padding-tickGap-widest, left+(d.Width-padding-left)/4)
	for i, g := range b.Groups {
		if i > 0 {
			y += groupGap
		}
		y = d.lines(g.Name, y, textSize, Ink, 2)
		most := 0.0
		for _, bar := range g.Bars {
			most = max(most, bar.Value, bar.Max)
		}
		x := scale{to: most, begin: left, end: right}
		for _, bar := range g.Bars {
			y += barDistance
			b.bar(d, bar, y, x)
		}
		d.Shapes = append(d.Shapes, Path{Lines: [][]Point{{{left, y - float64(len(g.Bars))*barDistance + 2}, {left, y}}}, Stroke: Faint, Width: 1})
	}
	return y
}

// bar draws a bar above y.
func (b Bars) bar(d *Drawing, bar Bar, y float64, x scale) {
	baseline, middle := y-textSize*descent, y-barDistance/2+1
	end := x.at(bar.Value)
	name := fit(bar.Name, textSize, x.begin-tickGap-padding)
	tip := strings.TrimSpace(bar.Name + " " + b.value(bar))
	d.Shapes = append(d.Shapes,
		Text{At: Point{x.begin - tickGap, baseline}, Anchor: End, Size: textSize, Color: Faint, Text: name, Full: clean(bar.Name)},
		Path{Lines: [][]Point{box{x.begin, middle - barHeight/2.0, end, middle + barHeight/2.0}.rectangle()}, Fill: cmp.Or(bar.Color, Series1), Tip: tip})
	if bar.Max > bar.Min {
		from, to := x.at(bar.Min), x.at(bar.Max)
		whisker := Path{Stroke: Paper, Width: 3.5, Lines: [][]Point{
			{{from, middle}, {to, middle}}, {{from, middle - 3}, {from, middle + 3}}, {{to, middle - 3}, {to, middle + 3}}}}
		d.Shapes = append(d.Shapes, whisker)
		whisker.Stroke, whisker.Width = Ink, 1.2
		d.Shapes = append(d.Shapes, whisker)
		end = max(end, to)
	}
	text := b.value(bar)
	d.Shapes = append(d.Shapes, Text{At: Point{end + tickGap, baseline}, Size: textSize, Color: Ink, Text: fit(text, textSize, d.Width-4-end-tickGap), Full: text})
}
