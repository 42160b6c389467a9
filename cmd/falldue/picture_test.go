package main

import (
	"bytes"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/chart/charttest"
	"github.com/falldue/falldue/ops"
)

func TestPoliciesAreDrawn(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a band and a line":           {"preview", "zizq", "5m"},
		"delays of nothing":           {"preview", "if(n < 3, 0s, 30d)"},
		"no retry":                    {"preview", "delay 1m; attempts 1"},
		"the longest delays":          {"preview", "36500d"},
		"a herd":                      {"herd", "visualization_sidekiq", "5m"},
		"a herd of one":               {"herd", "1s", "--failures", "1", "--retries", "1"},
		"a herd that is given up":     {"herd", "delay 1m; attempts 1"},
		"more dots than can be drawn": {"herd", "zizq", "--failures", "30000", "--retries", "2"},
	} {
		folder := t.TempDir()
		svg, image := filepath.Join(folder, "p.svg"), filepath.Join(folder, "p.png")
		if out, want := mustRun(t, append(append([]string{"policy"}, args...), "--svg", svg, "--png", image)...), mustRun(t, append([]string{"policy"}, args...)...); args[0] == "herd" && out != want || !strings.Contains(out, args[1]) {
			t.Errorf("%s: printed %s, and without a picture %s", name, out, want)
		}
		text, err := os.ReadFile(svg)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "<svg") || len(text) > 10<<20 {
			t.Errorf("%s: the SVG has %d bytes and begins with %.50s", name, len(text), text)
		}
		if name == "a herd" {
			lines := regexp.MustCompile(`</text>|<[^>]*>\n?`).ReplaceAllString(string(text), " ")
			for _, want := range []string{
				"Retries per minute: at most 84, idle 27% of the time; without jitter at most 200, idle 78% of the time",
				"Retries per minute: at most 100, idle 81% of the time", "retry 1", "retry 5",
			} {
				if !strings.Contains(strings.Join(strings.Fields(lines), " "), want) {
					t.Errorf("the picture of a herd lacks %s", want)
				}
			}
		}
		data, err := os.ReadFile(image)
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err := png.Decode(bytes.NewReader(data)); err != nil || decoded.Bounds().Dx() < 500 {
			t.Errorf("%s: the PNG: error %v", name, err)
		}
	}
	if _, err := execute(t, "policy", "preview", "zizq", "--png", filepath.Join(t.TempDir(), "missing", "p.png")); err == nil || exitStatus(err) != exitFailed {
		t.Errorf("a folder that does not exist: error %v", err)
	}
}

// TestPicturesOfPresetsHaveRoom: at the widths of pages and phones no text overlaps another,
// leaves the picture, or is struck through.
func TestPicturesOfPresetsHaveRoom(t *testing.T) {
	t.Parallel()
	for _, preset := range backoff.Presets() {
		previews, err := previewsOf([]string{preset.Name, "zizq"}, 25)
		if err != nil {
			t.Fatal(err)
		}
		h, err := herdsOf(t.Context(), preset.Name, ops.Outage{Failures: 100, Retries: 5, Bucket: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for _, figure := range []chart.Figure{drawPreviews(previews[:1]), drawPreviews(previews), chart.Herd(h.picture())} {
			for _, width := range charttest.Widths {
				for _, fault := range charttest.Faults(figure.Draw(width)) {
					t.Errorf("%s, %v pixels wide: %s", preset.Name, width, fault)
				}
			}
		}
	}
}

// TestPNGHasTheRoomOfTexts: the font of PNGs is not wider than the room of texts.
func TestPNGHasTheRoomOfTexts(t *testing.T) {
	t.Parallel()
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	const size = 100
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72})
	if err != nil {
		t.Fatal(err)
	}
	for r := ' '; r <= 'ÿ'; r++ {
		if unicode.IsControl(r) {
			continue
		}
		if got, room := float64(font.MeasureString(face, string(r)))/64, chart.TextWidth(string(r), size); got > room {
			t.Errorf("%q is %.1f wide, and has %.1f", r, got, room)
		}
	}
}

func TestThemesOfPictures(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	svg, image := filepath.Join(folder, "p.svg"), filepath.Join(folder, "p.png")
	for flag, want := range map[string]struct{ svg, png chart.Theme }{"auto": {chart.Auto, chart.Light}, "light": {chart.Light, chart.Light}, "dark": {chart.Dark, chart.Dark}} {
		mustRun(t, "policy", "preview", "arctan", "--svg", svg, "--png", image, "--theme", flag)
		text, err := os.ReadFile(svg)
		if err != nil {
			t.Fatal(err)
		}
		previews, err := previewsOf([]string{"arctan"}, 25)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != drawPreviews(previews).Draw(chart.Width).SVG(want.svg) || !strings.Contains(string(text), ">limit 24 h<") {
			t.Errorf("--theme %s draws %.1000s", flag, text)
		}
		file, err := os.Open(image)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := png.Decode(file)
		if closed := file.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		if got := color.NRGBAModel.Convert(decoded.At(1, 1)); got != want.png.RGB(chart.Paper) {
			t.Errorf("--theme %s: the background of the PNG is %v", flag, got)
		}
	}
	if _, err := execute(t, "policy", "preview", "arctan", "--svg", svg, "--theme", "sepia"); err == nil || exitStatus(err) != exitUsage || err.Error() != `--theme "sepia": must be auto, light or dark` {
		t.Errorf("a theme that does not exist: error %v", err)
	}
}
