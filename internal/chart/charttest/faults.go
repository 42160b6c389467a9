package charttest

import (
	"fmt"
	"math"

	"github.com/falldue/falldue/internal/chart"
)

// box is the room of a text.
type box struct{ left, top, right, bottom float64 }

func boxOf(t chart.Text) box {
	width := chart.TextWidth(t.Text, t.Size)
	left := t.At.X - width*float64(t.Anchor)/2
	return box{left, t.At.Y - 1.09*t.Size, left + width, t.At.Y + 0.31*t.Size}
}

func (b box) has(p chart.Point) bool {
	return p.X > b.left && p.X < b.right && p.Y > b.top && p.Y < b.bottom
}

// Faults returns what is wrong with a drawing: texts that overlap, shapes that leave it, and
// lines and marks that strike through texts.
func Faults(d chart.Drawing) (faults []string) {
	var texts []chart.Text
	for _, s := range d.Shapes {
		if t, ok := s.(chart.Text); ok {
			texts = append(texts, t)
		}
	}
	const rounding = 0.01
	for i, t := range texts {
		b := boxOf(t)
		if b.left < 0 || b.top < 0 || b.right > d.Width+rounding || b.bottom > d.Height+rounding {
			faults = append(faults, fmt.Sprintf("%q leaves the picture of %v × %v pixels: %.1f", t.Text, d.Width, d.Height, b))
		}
		for _, o := range texts[:i] {
			if c := boxOf(o); b.left < c.right-rounding && c.left < b.right-rounding && b.top < c.bottom-rounding && c.top < b.bottom-rounding {
				faults = append(faults, fmt.Sprintf("%q overlaps %q: %.1f, %.1f", t.Text, o.Text, b, c))
			}
		}
	}
	for _, s := range d.Shapes {
		for _, line := range inked(s) {
			for _, p := range line {
				if p.X < 0 || p.Y < 0 || p.X > d.Width || p.Y > d.Height {
					faults = append(faults, fmt.Sprintf("a line or a mark leaves the picture of %v × %v pixels: %.1f", d.Width, d.Height, p))
					break
				}
			}
			if t, struck := strikes(line, texts); struck {
				faults = append(faults, fmt.Sprintf("a line or a mark goes through %q", t.Text))
			}
		}
	}
	return faults
}

// inked returns the lines of a shape that would make a text hard to read. Grids are not
// among them: they are faint, and below the texts' own backgrounds.
func inked(s chart.Shape) (lines [][]chart.Point) {
	switch s := s.(type) {
	case chart.Marks:
		for _, at := range s.At {
			lines = append(lines, s.Mark.Outline(at, s.Size))
		}
	case chart.Path:
		if s.Stroke != chart.Grid && s.Fill != chart.Paper && s.Stroke != chart.Paper {
			lines = s.Lines
		}
	}
	return lines
}

// strikes looks at each half pixel of a line, near texts.
func strikes(line []chart.Point, texts []chart.Text) (chart.Text, bool) {
	for _, t := range texts {
		b := boxOf(t)
		for i := range line {
			from, to := line[max(i-1, 0)], line[i]
			if max(from.X, to.X) <= b.left || min(from.X, to.X) >= b.right || max(from.Y, to.Y) <= b.top || min(from.Y, to.Y) >= b.bottom {
				continue
			}
			steps := math.Ceil(2*math.Hypot(to.X-from.X, to.Y-from.Y)) + 1
			for k := range int(steps) + 1 {
				share := float64(k) / steps
				if b.has(chart.Point{X: from.X + share*(to.X-from.X), Y: from.Y + share*(to.Y-from.Y)}) {
					return t, true
				}
			}
		}
	}
	return chart.Text{}, false
}
