package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/chart/charttest"
)

func TestEverythingHasRoom(t *testing.T) {
	t.Parallel()
	for name, figure := range charttest.Figures() {
		for _, width := range charttest.Widths {
			for _, fault := range charttest.Faults(figure.Draw(width)) {
				t.Errorf("%s, %v pixels wide: %s", name, width, fault)
			}
		}
	}
}

// TestPicturesAreXML: in every theme, without a class that has no rule, and not much larger
// than what they show.
func TestPicturesAreXML(t *testing.T) {
	t.Parallel()
	for name, figure := range charttest.Figures() {
		drawing := figure.Draw(chart.Width)
		for _, theme := range []chart.Theme{chart.Auto, chart.Light, chart.Dark, chart.Page} {
			svg := drawing.SVG(theme)
			if len(svg) > 250_000 {
				t.Errorf("%s: %d bytes", name, len(svg))
			}
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, "-0 ") {
				t.Errorf("%s: a number is not finite:\n%.2000s", name, svg)
			}
			rules := svg
			if theme == chart.Page {
				rules = chart.CSS()
			}
			classes := 0
			for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
				token, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				element, ok := token.(xml.StartElement)
				if !ok {
					continue
				}
				for _, a := range element.Attr {
					if a.Name.Local == "style" {
						t.Errorf("%s: an attribute style, which a page's security policy blocks", name)
					}
					if a.Name.Local == "class" && element.Name.Local != "svg" {
						for class := range strings.FieldsSeq(a.Value) {
							if classes++; !strings.Contains(rules, "."+class+"{") {
								t.Errorf("%s: class %s has no rule", name, class)
							}
						}
					}
				}
			}
			follows := theme == chart.Auto || theme == chart.Page
			if follows != (classes > 0) || (theme == chart.Auto) != strings.Contains(svg, "prefers-color-scheme:dark") {
				t.Errorf("%s: theme %d has %d classes:\n%.500s", name, theme, classes, svg)
			}
			if (theme == chart.Page) == strings.Contains(svg, `="#`) {
				t.Errorf("%s: theme %d: colors as attributes are for programs that know no variables of CSS, and not for pages", name, theme)
			}
		}
	}
}

// texts returns the texts of a figure.
func texts(f chart.Figure) string {
	var b strings.Builder
	for _, s := range f.Draw(chart.Width).Shapes {
		if t, ok := s.(chart.Text); ok {
			b.WriteString(t.Text + "\n")
		}
	}
	return b.String()
}

func TestPicturesSayWhatTheyShow(t *testing.T) {
	t.Parallel()
	figures := charttest.Figures()
	for name, c := range map[string]struct{ has, lacks []string }{
		"a limit":         {has: []string{"arctan", "limit 24 h", "6 h", "25", "failures", "Not given up after 25 retries"}, lacks: []string{"jitter"}},
		"no wait":         {lacks: []string{"limit"}},
		"one retry":       {lacks: []string{"limit"}},
		"no retry":        {has: []string{"no retry"}, lacks: []string{"failures"}},
		"many limits":     {has: []string{"limit 1 h", "limit 6 h", "limit 5 h"}},
		"a herd":          {has: []string{"visualization_sidekiq", "100 tasks fail at the same time", "retry 1", "retry 5", "without jitter", "10 min"}, lacks: []string{"retry 6"}},
		"a herd given up": {has: []string{"gives up after the first failure"}, lacks: []string{"jitter", "idle"}},
		"a large herd":    {has: []string{"retry 1, 7 …"}},
		"a change":        {has: []string{"invoice.send", "480 would be due", "now: delay 2h, 0 due now", "12m, 480 due now", "Tasks that fall due per minute"}},
		"bars":            {has: []string{"drain_kept", "falldue-default", "123k · 0.62 of raw"}},
		"two hours":       {has: []string{"Tasks per minute", "failed", "10:30", "1 s", "none"}},
		"powers":          {has: []string{"1k", "1M", "100M"}},
		"hostile names":   {has: []string{"<script>", "\uFFFDright to left"}, lacks: []string{"\u202e", "\x00"}},
	} {
		got := texts(figures[name])
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(got, not) {
				t.Errorf("%s has %q:\n%s", name, not, got)
			}
		}
	}
}
