package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// Color is a color by its purpose. The zero value is none.
type Color int

// Colors by their purposes.
const (
	None Color = iota
	Paper
	Ink   // titles and values
	Faint // other texts, axes
	Grid
	Neutral // what is only compared with
	Series1
	Series2
	Series3
	Series4
	Series5
	Series6
	colors
)

// series is how many series have a look of their own.
const series = int(colors - Series1)

// colorOf returns the color of the series at an index. After the last color comes the first.
func colorOf(i int) Color { return Series1 + Color(i%series) }

// markOf returns the mark of the series at an index.
func markOf(i int) Mark { return Mark(i % int(marks)) }

// dashOf returns the dash of the series at an index.
func dashOf(i int) []float64 {
	return [][]float64{nil, {7, 3}, {2, 2.5}, {9, 3, 2, 3}, {4, 4}, {12, 3}}[i%series]
}

// Theme is how a picture chooses its colors.
type Theme int

// Themes.
const (
	Auto  Theme = iota // light or dark, as the reader's system is
	Light              // on white
	Dark               // on black
	Page               // by the CSS of the page that the picture is in, on the page's background
)

// palettes has the hexadecimal colors of both fixed themes. Color-blind people can tell the colors
// of series apart, and each has the contrast with its background that WCAG 2.2 asks for. A
// test checks both.
var palettes = map[Theme][colors]string{
	Light: {Paper: "ffffff", Ink: "1b1f24", Faint: "57606a", Grid: "dfe3e8", Neutral: "6e7781",
		Series1: "2449b7", Series2: "bd8800", Series3: "892572", Series4: "0095ff", Series5: "2e897c", Series6: "6d6818"},
	Dark: {Paper: "0d1117", Ink: "e6edf3", Faint: "9da7b3", Grid: "2a3139", Neutral: "8b949e",
		Series1: "7e90ff", Series2: "d6ab0c", Series3: "f1429c", Series4: "61dbf5", Series5: "1a7f2d", Series6: "f1f648"},
}

// names are what CSS calls the colors.
var names = [colors]string{
	Paper: "paper", Ink: "ink", Faint: "faint", Grid: "grid", Neutral: "neutral",
	Series1: "1", Series2: "2", Series3: "3", Series4: "4", Series5: "5", Series6: "6",
}

// RGB returns a color in a theme. Any theme but [Dark] counts as [Light].
func (t Theme) RGB(c Color) color.NRGBA {
	var rgb color.NRGBA
	if _, err := fmt.Sscanf(t.hex(c), "%02x%02x%02x", &rgb.R, &rgb.G, &rgb.B); err == nil {
		rgb.A = 0xff
	}
	return rgb
}

func (t Theme) hex(c Color) string {
	if t != Dark {
		t = Light
	}
	return palettes[t][c]
}

// CSS returns the rules for pages that have pictures of the theme [Page]. The page is light or
// dark as the reader's system is, or as an attribute data-theme of the html element says. The
// variables --chart-1 and so on have the colors.
func CSS() string {
	var b strings.Builder
	variables := func(selector string, t Theme) string {
		var v strings.Builder
		for c := Paper; c < colors; c++ {
			fmt.Fprintf(&v, "--chart-%s:#%s;", names[c], t.hex(c))
		}
		return selector + "{" + strings.TrimSuffix(v.String(), ";") + "}\n"
	}
	b.WriteString(variables(":root", Light))
	b.WriteString("@media(prefers-color-scheme:dark){" + strings.TrimSpace(variables(":root", Dark)) + "}\n")
	b.WriteString(variables(":root[data-theme=light]", Light))
	b.WriteString(variables(":root[data-theme=dark]", Dark))
	b.WriteString(rules())
	return b.String()
}

// rules returns the rules that give the classes of shapes their colors.
func rules() string {
	var b strings.Builder
	for c := Paper; c < colors; c++ {
		fmt.Fprintf(&b, ".chart-f%[1]s{fill:var(--chart-%[1]s)}\n.chart-s%[1]s{stroke:var(--chart-%[1]s)}\n", names[c])
	}
	return b.String()
}
