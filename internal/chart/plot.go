package chart

import (
	"cmp"
	"math"
	"slices"
)

// Plot has series over an axis.
type Plot struct {
	Title  string
	X, Y   Axis
	Series []Series
	Limits []Limit
	// Stacked puts each series of steps on the one before. Their points have the same X.
	Stacked bool
	// Height is the height of the area with the series, in pixels. Defaults to 170.
	Height float64
	// Empty takes the place of the area if no series has a point. Defaults to "nothing to show".
	Empty string
}

// Style is how a series looks.
type Style int

// Styles of series.
const (
	Lines Style = iota
	Steps       // lines that are level for the length of a step
	Dots
)

// Series is a series of points.
type Series struct {
	Name   string
	Style  Style
	Points []Point // in the order of X; a Y that is not a number, or infinite, leaves a gap
	// Upper has the upper edge of a band, whose lower edge are the points.
	Upper []float64
	// Step is the length of a step.
	Step float64
	// Filled fills the area below.
	Filled bool
	// Unfinished says that the last point is not complete, such as the current minute.
	Unfinished bool
	// Color defaults to the color of the series' place.
	Color Color
}

// Limit is a value that a series tends to.
type Limit struct {
	At    float64
	Label string
	Color Color // of its line
}

const (
	plotHeight   = 170
	tickGap      = 8            // between labels and the area
	tickDistance = 2 * textSize // between labels of the vertical axis
	labelGap     = 20           // between labels of the axis below
	edge         = 6            // between the area's edges and its first and last point
	markedMost   = 40           // points with marks
	limitWidth   = 1.2
	limitGap     = 4 // between the line of a limit and its label
)

var limitDash = []float64{4, 3}

// ranges returns the values of both axes.
func (p Plot) ranges() (x, y scale, empty bool) {
	x, y = scale{from: math.Inf(1), to: math.Inf(-1)}, scale{from: math.Inf(1), to: math.Inf(-1), log: p.Y.Log}
	x.log = p.X.Log
	add := func(s *scale, v float64) { s.from, s.to = min(s.from, v), max(s.to, v) }
	for _, s := range p.drawn() {
		for i, at := range s.Points {
			if !finite(at.Y) {
				continue
			}
			add(&x, at.X)
			add(&x, at.X+s.Step)
			if !p.Y.Log || at.Y > 0 {
				add(&y, at.Y)
			}
			if s.Upper != nil {
				add(&y, s.Upper[i])
			}
		}
	}
	empty = math.IsInf(x.from, 0) || math.IsInf(y.from, 0)
	if p.X.From != p.X.To {
		x.from, x.to = p.X.From, p.X.To
	}
	if x.to <= x.from {
		x.from, x.to = x.from-0.5, x.from+0.5
	}
	if p.Y.From != p.Y.To {
		y.from, y.to = p.Y.From, p.Y.To
		return x, y, empty
	}
	p.round(&y)
	return x, y, empty
}

// round makes the range of values one that begins and ends well, with room for the labels of
// limits.
func (p Plot) round(y *scale) {
	for _, l := range p.Limits {
		y.to = max(y.to, l.At)
	}
	room := 1 - (textSize*leading+limitGap+2)/p.height() // the share below the label of the highest limit
	if y.log {
		y.from /= 1.5
		y.to *= 1.5
		if p.Limits != nil {
			y.to = max(y.to, y.from*math.Pow(y.to/1.5/y.from, 1/room))
		}
		return
	}
	y.from = min(y.from, 0)
	if y.to <= y.from {
		y.to = y.from + 1
	}
	if p.Limits != nil {
		y.to = y.from + (y.to-y.from)/room
		return
	}
	for _, list := range p.Y.candidates(y.from, y.to) {
		if len(list) < 2 {
			continue
		}
		step := list[1].at - list[0].at
		if to := math.Ceil(y.to/step-1e-9) * step; p.height()*step/(to-y.from) >= tickDistance {
			y.to = to
			return
		}
	}
}

func (p Plot) height() float64 {
	if p.Height > 0 {
		return p.Height
	}
	return plotHeight
}

// fitsY reports whether ticks of the vertical axis leave room between their labels.
func (p Plot) fitsY(y scale) func([]tick) bool {
	y.begin, y.end = p.height(), 0
	return func(list []tick) bool {
		for i := range list[min(1, len(list)):] {
			if y.at(list[i].at)-y.at(list[i+1].at) < tickDistance-0.01 {
				return false
			}
		}
		return true
	}
}

func (p Plot) gutter(float64) float64 {
	_, y, empty := p.ranges()
	if empty {
		return padding
	}
	width := 0.0
	for _, t := range p.Y.ticks(y.from, y.to, p.fitsY(y)) {
		width = max(width, TextWidth(t.label, textSize))
	}
	return padding + width + tickGap
}

// drawn returns the series as they are drawn: stacked ones on those before.
func (p Plot) drawn() []Series {
	if !p.Stacked {
		return p.Series
	}
	list := slices.Clone(p.Series)
	for i := range list {
		list[i].Points = slices.Clone(list[i].Points)
		for k := range list[i].Points {
			if i > 0 {
				list[i].Points[k].Y += list[i-1].Points[k].Y
			}
		}
	}
	return list
}

func (p Plot) draw(d *Drawing, top, gutter float64) float64 {
	below := len(d.Shapes)
	bottom, homeless := p.drawWith(d, top, gutter, nil)
	if homeless != nil { // those are in the legend instead
		d.Shapes = d.Shapes[:below]
		bottom, _ = p.drawWith(d, top, gutter, homeless)
	}
	return bottom
}

// drawWith draws the plot with some of its limits in the legend. It returns the other limits
// for whose labels there is no room, too.
func (p Plot) drawWith(d *Drawing, top, gutter float64, inLegend []Limit) (bottom float64, homeless []Limit) {
	x, y, empty := p.ranges()
	if top = d.lines(p.Title, top, textSize, Ink, 3); empty {
		return d.lines(cmp.Or(p.Empty, "nothing to show"), top, textSize, Faint, 3), nil
	}
	top = d.legend(p.legend(inLegend), top)
	area := box{gutter, top + 13, d.Width - padding - edge, 0}
	area.bottom = area.top + p.height()
	x.begin, x.end, y.begin, y.end = area.left, area.right, area.bottom, area.top
	if slices.ContainsFunc(p.Series, Series.marked) {
		x.begin, x.end = x.begin+edge, x.end-edge
	}
	p.axes(d, area, x, y)
	var lines [][]Point
	drawn := p.drawn()
	for k := range drawn {
		i := k
		if p.Stacked {
			i = len(drawn) - 1 - k // the lowest is in front
		}
		lines = append(lines, drawn[i].add(d, i, x, y, area)...)
	}
	var taken []box
	for _, l := range p.Limits {
		at := y.at(l.At)
		d.Shapes = append(d.Shapes, Path{Lines: [][]Point{{{area.left, at}, {area.right, at}}}, Stroke: cmp.Or(l.Color, Faint), Width: limitWidth, Dash: limitDash, Tip: l.Label})
		taken = append(taken, box{area.left, at - 1, area.right, at + 1})
	}
	for _, l := range p.Limits {
		if slices.Contains(inLegend, l) {
			continue
		}
		label, found := place(l.Label, area, y.at(l.At), lines, taken)
		if !found {
			homeless = append(homeless, l)
			continue
		}
		taken = append(taken, label.box())
		d.Shapes = append(d.Shapes, Path{Lines: [][]Point{label.box().rectangle()}, Fill: Paper}, label)
	}
	return p.below(d, area), homeless
}

// axes draws the grid, and the labels of the vertical axis.
func (p Plot) axes(d *Drawing, area box, x, y scale) {
	var grid [][]Point
	for _, t := range p.Y.ticks(y.from, y.to, p.fitsY(y)) {
		at := y.at(t.at)
		grid = append(grid, []Point{{area.left, at}, {area.right, at}})
		d.Shapes = append(d.Shapes, Text{At: Point{area.left - tickGap, at + textSize*0.36}, Anchor: End, Size: textSize, Color: Faint, Text: t.label})
	}
	d.Shapes = append(d.Shapes, Path{Lines: grid, Stroke: Grid, Width: 1})
	axis := [][]Point{{{area.left, area.bottom}, {area.right, area.bottom}}}
	for _, t := range p.X.ticks(x.from, x.to, p.fitsX(d.Width, x)) {
		at := x.at(t.at)
		axis = append(axis, []Point{{at, area.bottom}, {at, area.bottom + 4}})
		d.Shapes = append(d.Shapes, p.labelX(d.Width, area, x, t))
	}
	d.Shapes = append(d.Shapes, Path{Lines: axis, Stroke: Faint, Width: 1})
}

// labelX returns the label of a tick of the axis below, moved so that it is in the picture.
func (p Plot) labelX(width float64, area box, x scale, t tick) Text {
	half := TextWidth(t.label, textSize) / 2
	at := min(max(x.at(t.at), padding+half), width-4-half)
	return Text{At: Point{at, area.bottom + 22}, Anchor: Middle, Size: textSize, Color: Faint, Text: t.label}
}

func (p Plot) fitsX(width float64, x scale) func([]tick) bool {
	return func(list []tick) bool {
		end := math.Inf(-1)
		for _, t := range list {
			b := p.labelX(width, box{}, x, t).box()
			if b.left < end+labelGap {
				return false
			}
			end = b.right
		}
		return true
	}
}

// below writes the label of the axis below the area, and returns where the panel ends.
func (p Plot) below(d *Drawing, area box) float64 {
	end := area.bottom + 22 + textSize*descent
	if p.X.Label == "" {
		return end
	}
	end += textSize * leading
	d.Shapes = append(d.Shapes, Text{At: Point{(area.left + area.right) / 2, end - textSize*descent}, Anchor: Middle, Size: textSize, Color: Faint,
		Text: fit(p.X.Label, textSize, area.right-area.left), Full: p.X.Label})
	return end
}
