package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPoliciesAreDrawn(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a band and a line":           {"preview", "zizq", "5m"},
		"delays of nothing":           {"preview", "if(n < 3, 0s, 30d)"},
		"no retry":                    {"preview", "delay 1m; attempts 1"},
		"the longest delays":          {"preview", "36500d"},
		"a herd":                      {"herd", "visualization_sidekiq", "5m"},
		"a herd of one":               {"herd", "1s", "--failures", "1", "--attempts", "1"},
		"a herd that is given up":     {"herd", "delay 1m; attempts 1"},
		"more dots than can be drawn": {"herd", "zizq", "--failures", "30000", "--attempts", "2"},
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
			for _, want := range []string{">peak 84 in 1m, idle 27 %<", ">peak 200 in 1m, idle 78 %<", ">peak 100 in 1m, idle 81 %<", ">retry 1<", ">retry 5<"} {
				if !strings.Contains(string(text), want) {
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
