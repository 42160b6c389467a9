package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/chart/charttest"
)

var (
	size = regexp.MustCompile(`viewBox="0 0 ([\d.]+) ([\d.]+)"`)
	root = regexp.MustCompile(`^<svg [^>]*>\n`)
	// text has what is before a text's height, the height, and the rest.
	text  = regexp.MustCompile(`(?m)^(<text x="[-\d.]+" y=")([-\d.]+)(".*</text>)$`)
	tags  = regexp.MustCompile(`<title>.*</title>|<[^>]*>`)
	sizes = regexp.MustCompile(`viewBox="[^"]*" width="[^"]*" height="[^"]*"`)
)

// render returns what librsvg makes of an SVG.
func render(t *testing.T, program, svg string) *image.NRGBA {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "--unlimited")
	cmd.Stdin = strings.NewReader(svg)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("rsvg-convert: %v: %s", err, stderr.String())
	}
	decoded, err := png.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	made := image.NewNRGBA(decoded.Bounds())
	draw.Draw(made, made.Rect, decoded, image.Point{}, draw.Src)
	return made
}

// TestTextsHaveRoomInLibrsvg renders each text of a picture on a line by itself, and compares
// where their ink is.
func TestTextsHaveRoomInLibrsvg(t *testing.T) {
	t.Parallel()
	program := requireProgram(t, "rsvg-convert")
	for _, p := range pictures(t) {
		found, head, texts := size.FindStringSubmatch(p.svg), root.FindString(p.svg), text.FindAllStringSubmatch(p.svg, -1)
		if found == nil || head == "" {
			t.Fatalf("%s begins with %.200s", p.name, p.svg)
		}
		width, height := number(t, found[1]), number(t, found[2])
		// A line has a margin around it, and its baseline above its end. cairo makes pictures of
		// up to 32,767 pixels.
		const margin, line, below, most = 20, 50, 15, 600
		var boxes []box
		for len(texts) > 0 {
			n := min(len(texts), most)
			var svg strings.Builder
			sheet := fmt.Sprintf(`viewBox="%d 0 %v %d" width="%v" height="%d"`, -margin, width+2*margin, line*n, width+2*margin, line*n)
			svg.WriteString(sizes.ReplaceAllString(head, sheet))
			for i, one := range texts[:n] {
				fmt.Fprintf(&svg, "%s%d%s\n", one[1], line*(i+1)-below, one[3])
			}
			svg.WriteString("</svg>\n")
			made := render(t, program, svg.String())
			for i, one := range texts[:n] {
				ink := inked(made, image.Rect(0, line*i, made.Rect.Dx(), line*(i+1)))
				if ink.Empty() {
					continue
				}
				down := number(t, one[2]) - float64(line*(i+1)-below)
				boxes = append(boxes, box{Text: tags.ReplaceAllString(one[0], ""),
					Left: float64(ink.Min.X - margin), Right: float64(ink.Max.X - margin), Top: float64(ink.Min.Y) + down, Bottom: float64(ink.Max.Y) + down})
			}
			texts = texts[n:]
		}
		check(t, p.name, boxes, width, height)
	}
}

// inked returns the part of an area that is not transparent.
func inked(made *image.NRGBA, area image.Rectangle) (found image.Rectangle) {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			if made.Pix[made.PixOffset(x, y)+3] > 0x40 {
				found = found.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return found
}

// TestLibrsvgHasTheColorsOfThemes: it knows no variables of CSS, and takes the light theme for
// Auto.
func TestLibrsvgHasTheColorsOfThemes(t *testing.T) {
	t.Parallel()
	program := requireProgram(t, "rsvg-convert")
	drawing := charttest.Figures()["a limit"].Draw(chart.Width)
	for theme, want := range map[chart.Theme]chart.Theme{chart.Auto: chart.Light, chart.Light: chart.Light, chart.Dark: chart.Dark} {
		made := render(t, program, drawing.SVG(theme))
		if got := made.NRGBAAt(2, 2); got != want.RGB(chart.Paper) {
			t.Errorf("theme %d: the background is %v, want %v", theme, got, want.RGB(chart.Paper))
		}
		blue := 0
		for y := range made.Bounds().Dy() {
			for x := range made.Bounds().Dx() {
				if made.NRGBAAt(x, y) == want.RGB(chart.Series1) {
					blue++
				}
			}
		}
		if blue < 200 {
			t.Errorf("theme %d: %d dots have the color of the series", theme, blue)
		}
	}
}
