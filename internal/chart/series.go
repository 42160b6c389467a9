package chart

import "math"

// color returns the color of a series at an index.
func (s Series) color(i int) Color {
	if s.Color != None {
		return s.Color
	}
	return colorOf(i)
}

// add draws the series at an index, and returns its lines.
func (s Series) add(d *Drawing, i int, x, y scale, area box) (lines [][]Point) {
	var points, upper []Point
	flush := func() {
		if len(points) > 0 {
			lines = append(lines, s.part(d, i, points, upper, area)...)
		}
		points, upper = nil, nil
	}
	for k, p := range s.Points {
		if !finite(p.Y) {
			flush()
			continue
		}
		at := Point{x.at(p.X), y.at(p.Y)}
		points = append(points, at)
		if s.Style == Steps {
			points = append(points, Point{x.at(p.X + s.Step), at.Y})
		}
		if s.Upper != nil {
			upper = append(upper, Point{at.X, y.at(s.Upper[k])})
		}
	}
	flush()
	return lines
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

const bandOpacity = 0.22

// part draws points without a gap.
func (s Series) part(d *Drawing, i int, points, upper []Point, area box) [][]Point {
	color := s.color(i)
	if s.Style == Dots {
		d.Shapes = append(d.Shapes, Marks{At: points, Mark: markOf(i), Size: 2.1, Color: color, Tip: s.Name})
		return [][]Point{points}
	}
	lines := [][]Point{points}
	if upper != nil {
		lines = append(lines, upper)
		band := append([]Point(nil), points...)
		for k := range upper {
			band = append(band, upper[len(upper)-1-k])
		}
		d.Shapes = append(d.Shapes, Path{Lines: [][]Point{band}, Fill: color, Opacity: bandOpacity, Tip: s.Name})
	}
	points = thinned(points)
	if s.Filled {
		below := append([]Point{{points[0].X, area.bottom}}, points...)
		below = append(below, Point{points[len(points)-1].X, area.bottom})
		d.Shapes = append(d.Shapes, Path{Lines: [][]Point{below}, Fill: Paper}, Path{Lines: [][]Point{below}, Fill: color, Opacity: 2 * bandOpacity, Tip: s.Name})
	}
	line := Path{Lines: [][]Point{points}, Stroke: color, Width: 2, Dash: dashOf(i), Tip: s.Name}
	if s.Style == Steps {
		line.Width = 1.5
		if s.Filled {
			line.Dash = nil
		}
	}
	last := 2
	if s.Style == Steps {
		last = 3 // down or up, and along
	}
	if n := len(points); s.Unfinished && n >= last {
		open := line
		open.Lines, open.Dash = [][]Point{points[n-last:]}, []float64{2, 3}
		line.Lines = [][]Point{points[:n-last+1]}
		d.Shapes = append(d.Shapes, open)
	}
	d.Shapes = append(d.Shapes, line)
	if s.marked() || s.Style == Lines && len(points) == 1 {
		d.Shapes = append(d.Shapes, Marks{At: points, Mark: markOf(i), Size: 2.8, Color: color, Tip: s.Name})
	}
	return lines
}

// marked reports whether the points of a line have marks.
func (s Series) marked() bool { return s.Style == Lines && len(s.Points) <= markedMost }

// thinned returns at most four points for a pixel's column: the first, the
// lowest, the highest and the last, which look the same.
func thinned(points []Point) (list []Point) {
	for len(points) > 0 {
		n, low, high := 0, 0, 0
		for n < len(points) && math.Floor(points[n].X) == math.Floor(points[0].X) {
			if points[n].Y < points[low].Y {
				low = n
			}
			if points[n].Y > points[high].Y {
				high = n
			}
			n++
		}
		last := -1
		for _, k := range []int{0, min(low, high), max(low, high), n - 1} {
			if k > last {
				list, last = append(list, points[k]), k
			}
		}
		points = points[n:]
	}
	return list
}

// place finds room for the label of a limit, at a height, away from lines and boxes.
func place(label string, area box, at float64, lines [][]Point, boxes []box) (Text, bool) {
	label = fit(label, textSize, area.right-area.left-2*edge)
	for _, y := range []float64{at - textSize*descent - limitGap, at + textSize*(leading-descent) + limitGap} { // above the line, below
		for _, anchor := range []Anchor{Start, End, Middle} {
			x := map[Anchor]float64{Start: area.left + edge, Middle: (area.left + area.right) / 2, End: area.right - edge}[anchor]
			t := Text{At: Point{x, y}, Anchor: anchor, Size: textSize, Color: Ink, Text: label}
			if b := t.box(); b.top >= area.top && b.bottom <= area.bottom && free(b, lines, boxes) {
				return t, true
			}
		}
	}
	return Text{}, false
}

func free(b box, lines [][]Point, boxes []box) bool {
	for _, o := range boxes {
		if b.overlaps(o) {
			return false
		}
	}
	b = b.grown(limitGap - 1) // for the width of lines, and marks
	for _, line := range lines {
		for i := range line {
			if b.crosses(line[max(i-1, 0)], line[i]) {
				return false
			}
		}
	}
	return true
}
