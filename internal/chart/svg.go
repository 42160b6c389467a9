package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// fonts are the sans-serif fonts of systems.
const fonts = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans',Arial,sans-serif"

// SVG returns the drawing as an SVG element. A picture of the theme [Page] has neither colors
// nor a size: the rules of [CSS] give it colors, and it is as wide as what it is in. Others
// are files of their own, with a background.
func (d Drawing) SVG(t Theme) string {
	w := svgWriter{theme: t, used: map[string]bool{}}
	for _, s := range d.Shapes {
		w.shape(s)
	}
	label := d.Title
	if d.Description != "" {
		label += ". " + d.Description
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s"`, num(d.Width), num(d.Height))
	if t != Page {
		fmt.Fprintf(&b, ` width="%s" height="%s"`, num(d.Width), num(d.Height))
	}
	fmt.Fprintf(&b, " class=\"chart\" role=\"img\" aria-label=\"%s\" font-family=\"%s\" font-size=\"%s\">\n", escape(label), fonts, num(textSize))
	if t != Page {
		paper := w.colors(Paper, None)
		b.WriteString(w.style())
		fmt.Fprintf(&b, "<rect width=\"%s\" height=\"%s\"%s/>\n", num(d.Width), num(d.Height), paper)
	}
	b.WriteString(w.String())
	b.WriteString("</svg>\n")
	return b.String()
}

type svgWriter struct {
	strings.Builder
	theme Theme
	used  map[string]bool // the classes of shapes
}

// style returns the rules by which a file follows the reader's system.
func (w *svgWriter) style() string {
	if w.theme != Auto {
		return ""
	}
	var b strings.Builder
	b.WriteString("<style>\n")
	for line := range strings.Lines(CSS()) {
		if strings.Contains(line, "data-theme") {
			continue
		}
		if class, _, ok := strings.Cut(strings.TrimPrefix(line, "."), "{"); strings.HasPrefix(line, ".") && ok && !w.used[class] {
			continue
		}
		b.WriteString(line)
	}
	b.WriteString("</style>\n")
	return b.String()
}

// colors returns the attributes of a shape's colors. Classes go before attributes where a
// program knows variables of CSS.
func (w *svgWriter) colors(fill, stroke Color) string {
	var classes []string
	var b strings.Builder
	for _, part := range []struct {
		color Color
		class string
		name  string
	}{{fill, "f", "fill"}, {stroke, "s", "stroke"}} {
		switch {
		case part.color != None:
			class := "chart-" + part.class + names[part.color]
			classes, w.used[class] = append(classes, class), true
			if w.theme != Page {
				fmt.Fprintf(&b, ` %s="#%s"`, part.name, w.theme.hex(part.color))
			}
		case part.name == "fill":
			b.WriteString(` fill="none"`)
		}
	}
	if w.theme == Auto || w.theme == Page {
		fmt.Fprintf(&b, ` class="%s"`, strings.Join(classes, " "))
	}
	return b.String()
}

func (w *svgWriter) shape(s Shape) {
	switch s := s.(type) {
	case Path:
		w.path(s)
	case Marks:
		w.marks(s)
	case Text:
		w.text(s)
	}
}

func (w *svgWriter) path(p Path) {
	w.WriteString(`<path d="`)
	for _, line := range p.Lines {
		w.line(line)
		if p.Fill != None {
			w.WriteByte('z')
		}
	}
	w.WriteString(`"` + w.colors(p.Fill, p.Stroke))
	if p.Fill != None && p.Opacity > 0 && p.Opacity < 1 {
		fmt.Fprintf(w, ` fill-opacity="%s"`, num2(p.Opacity))
	}
	if p.Stroke != None {
		fmt.Fprintf(w, ` stroke-width="%s" stroke-linejoin="round"`, num(p.Width))
		if p.Dash != nil {
			w.WriteString(` stroke-dasharray="`)
			for i, length := range p.Dash {
				if i > 0 {
					w.WriteByte(' ')
				}
				w.WriteString(num(length))
			}
			w.WriteByte('"')
		}
	}
	w.end("path", p.Tip)
}

// line writes the points of a line. A point of another place than the one before needs no
// command.
func (w *svgWriter) line(line []Point) {
	last := ""
	for i, p := range line {
		at := num(p.X) + " " + num(p.Y)
		switch {
		case i == 0:
			w.WriteString("M" + at)
		case at != last:
			w.WriteString(" " + at)
		}
		last = at
	}
}

func (w *svgWriter) marks(m Marks) {
	w.WriteString(`<path d="`)
	outline := m.Mark.Outline(Point{}, m.Size)
	var rest strings.Builder // from the first corner on, the same for all marks
	for i, p := range outline[1:] {
		rest.WriteString(map[bool]string{true: "l", false: " "}[i == 0] + num2(p.X-outline[i].X) + " " + num2(p.Y-outline[i].Y))
	}
	if m.Mark == Circle {
		r := num2(m.Size)
		rest.Reset()
		fmt.Fprintf(&rest, "a%s %s 0 1 0 -%s 0 %s %s 0 1 0 %s 0", r, r, num2(2*m.Size), r, r, num2(2*m.Size))
	}
	seen := map[string]bool{}
	for _, at := range m.At {
		move := "M" + num(at.X+outline[0].X) + " " + num(at.Y+outline[0].Y)
		if !seen[move] {
			w.WriteString(move + rest.String() + "z")
		}
		seen[move] = true
	}
	w.WriteString(`"` + w.colors(m.Color, None))
	w.end("path", m.Tip)
}

func (w *svgWriter) text(t Text) {
	if t.Text == "" {
		return
	}
	fmt.Fprintf(w, `<text x="%s" y="%s"`, num(t.At.X), num(t.At.Y))
	if t.Size != textSize {
		fmt.Fprintf(w, ` font-size="%s"`, num(t.Size))
	}
	if t.Anchor != Start {
		fmt.Fprintf(w, ` text-anchor="%s"`, [...]string{Middle: "middle", End: "end"}[t.Anchor])
	}
	w.WriteString(w.colors(t.Color, None) + ">" + escape(t.Text))
	if t.Full != "" && t.Full != t.Text {
		w.WriteString("<title>" + escape(t.Full) + "</title>")
	}
	w.WriteString("</text>\n")
}

// end ends an element that may have a tip.
func (w *svgWriter) end(name, tip string) {
	if tip == "" {
		w.WriteString("/>\n")
		return
	}
	fmt.Fprintf(w, "><title>%s</title></%s>\n", escape(clean(tip)), name)
}

// num formats a length with one digit after the point.
func num(v float64) string { return rounded(v, 10) }

func num2(v float64) string { return rounded(v, 100) }

func rounded(v, digits float64) string {
	v = math.Round(v*digits) / digits
	return strconv.FormatFloat(v+0, 'f', -1, 64) // -0 + 0 is 0
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all text
	return b.String()
}
