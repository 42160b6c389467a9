package chart

import (
	"cmp"
	"slices"
)

// entry explains a look.
type entry struct {
	text  string
	color Color
	dash  []float64
	line  bool
	band  bool
	mark  Mark
	marks bool
}

// legend returns an entry for each series that has a name, and for limits. One line needs
// none: the title says what it is.
func (p Plot) legend(limits []Limit) (list []entry) {
	for i, s := range p.Series {
		if s.Name == "" || len(s.Points) == 0 || len(p.Series) == 1 && s.Style != Dots {
			continue
		}
		e := entry{text: s.Name, color: s.color(i), dash: dashOf(i), line: s.Style != Dots, mark: markOf(i), marks: s.Style == Dots || s.marked()}
		if s.Filled {
			e.band, e.dash = true, nil
		}
		list = append(list, e)
	}
	for _, l := range limits {
		list = append(list, entry{text: l.Label, color: cmp.Or(l.Color, Faint), line: true, dash: limitDash})
	}
	return list
}

const (
	keySize  = 24 // width of the line before a legend's text
	keyGap   = 6
	entryGap = 16
)

// legend writes a legend below y, in as many rows as it needs. It returns where it ends.
func (d *Drawing) legend(list []entry, y float64) float64 {
	x, most := float64(padding), d.Width-padding
	if len(list) > 0 {
		y += textSize * leading
	}
	for _, e := range list {
		key := float64(keySize)
		if !e.line {
			key = 8
		}
		text := fit(e.text, textSize, most-padding-key-keyGap)
		width := key + keyGap + TextWidth(text, textSize)
		if x > padding && x+width > most {
			x, y = padding, y+textSize*leading
		}
		middle := y - textSize*0.62
		d.Shapes = append(d.Shapes, e.key(x, middle, key)...)
		d.Shapes = append(d.Shapes, Text{At: Point{x + key + keyGap, y - textSize*descent}, Size: textSize, Color: Faint, Text: text, Full: e.text})
		x += width + entryGap
	}
	return y
}

// key draws the look of an entry.
func (e entry) key(x, y, width float64) (shapes []Shape) {
	if e.band {
		shapes = append(shapes, Path{Lines: [][]Point{box{x, y - 4, x + width, y + 4}.rectangle()}, Fill: e.color, Opacity: 2 * bandOpacity, Stroke: e.color, Width: 1})
	} else if e.line {
		shapes = append(shapes, Path{Lines: [][]Point{{{x, y}, {x + width, y}}}, Stroke: e.color, Width: 2, Dash: slices.Clone(e.dash)})
	}
	if e.marks {
		shapes = append(shapes, Marks{At: []Point{{x + width/2, y}}, Mark: e.mark, Size: 3, Color: e.color})
	}
	return shapes
}
