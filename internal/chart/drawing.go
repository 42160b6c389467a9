package chart

import "math"

// Drawing is a figure in which everything has its place. Lengths are in pixels, from the upper
// left corner.
type Drawing struct {
	Width, Height      float64
	Title, Description string  // what the picture shows, for people who cannot see it
	Shapes             []Shape // the first is below the others
}

// Shape is a part of a drawing: a [Path], [Marks] or a [Text].
type Shape interface{ shape() }

// Point is a place.
type Point struct{ X, Y float64 }

// Path has lines, and areas if it has a fill.
type Path struct {
	Lines        [][]Point
	Fill, Stroke Color
	Opacity      float64   // of the fill
	Width        float64   // of the stroke
	Dash         []float64 // lengths of dashes and gaps, nil for a solid stroke
	Tip          string    // what the shape means
}

// Marks are points that all look alike.
type Marks struct {
	At    []Point
	Mark  Mark
	Size  float64 // half the width
	Color Color
	Tip   string
}

// Text is one line of text.
type Text struct {
	At     Point // on the baseline
	Anchor Anchor
	Size   float64
	Color  Color
	Text   string
	Full   string // the whole text, if Text is a part of it
}

func (Path) shape()  {}
func (Marks) shape() {}
func (Text) shape()  {}

// Anchor is the part of a text that is at its place.
type Anchor int

// Anchors of texts.
const (
	Start Anchor = iota
	Middle
	End
)

// Mark is the form of a mark.
type Mark int

// Marks, in the order in which series have them.
const (
	Circle Mark = iota
	Square
	Triangle
	Diamond
	Cross
	Valley // a triangle on its tip
	marks
)

// Outline returns the corners of a mark of a size around a point, of a circle twelve.
func (m Mark) Outline(at Point, size float64) []Point {
	var corners []Point
	add := func(x, y float64) { corners = append(corners, Point{at.X + x*size, at.Y + y*size}) }
	switch m {
	case Square:
		add(-0.9, -0.9)
		add(0.9, -0.9)
		add(0.9, 0.9)
		add(-0.9, 0.9)
	case Triangle, Valley:
		up := 1.0
		if m == Valley {
			up = -1
		}
		add(0, -1.15*up)
		add(1.15, 0.9*up)
		add(-1.15, 0.9*up)
	case Diamond:
		add(0, -1.3)
		add(1.3, 0)
		add(0, 1.3)
		add(-1.3, 0)
	case Cross: // upright
		for _, p := range [][2]float64{{-0.4, -1.2}, {0.4, -1.2}, {0.4, -0.4}, {1.2, -0.4}, {1.2, 0.4}, {0.4, 0.4}, {0.4, 1.2}, {-0.4, 1.2}, {-0.4, 0.4}, {-1.2, 0.4}, {-1.2, -0.4}, {-0.4, -0.4}} {
			add(p[0], p[1])
		}
	default:
		for i := range 12 {
			sin, cos := math.Sincos(float64(i) * math.Pi / 6)
			add(cos, sin)
		}
	}
	return corners
}

// box is a rectangle.
type box struct{ left, top, right, bottom float64 }

// box returns the room of a text.
func (t Text) box() box {
	width := TextWidth(t.Text, t.Size)
	b := box{t.At.X, t.At.Y - t.Size*(leading-descent), t.At.X + width, t.At.Y + t.Size*descent}
	switch t.Anchor {
	case Middle:
		b.left, b.right = b.left-width/2, b.right-width/2
	case End:
		b.left, b.right = b.left-width, b.right-width
	}
	return b
}

func (b box) overlaps(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

func (b box) grown(by float64) box { return box{b.left - by, b.top - by, b.right + by, b.bottom + by} }

// rectangle returns the corners of a box.
func (b box) rectangle() []Point {
	return []Point{{b.left, b.top}, {b.right, b.top}, {b.right, b.bottom}, {b.left, b.bottom}}
}

// crosses reports whether a box has a part of the line from p to q in it.
func (b box) crosses(p, q Point) bool {
	// The part of the line that is inside begins and ends at these shares of it.
	from, to := 0.0, 1.0
	for _, side := range []struct{ at, step, low, high float64 }{{p.X, q.X - p.X, b.left, b.right}, {p.Y, q.Y - p.Y, b.top, b.bottom}} {
		if side.step == 0 {
			if side.at < side.low || side.at > side.high {
				return false
			}
			continue
		}
		one, other := (side.low-side.at)/side.step, (side.high-side.at)/side.step
		from, to = max(from, min(one, other)), min(to, max(one, other))
	}
	return from <= to
}
