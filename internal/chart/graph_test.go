package chart_test

import (
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/chart/charttest"
)

// TestGraphHasRoom: texts of nodes stay in their boxes, each node is below those before it, and lines end at boxes.
func TestGraphHasRoom(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Wide ", 20)
	nodes := []chart.Node{{Title: "a", Text: "b"}, {Title: long, Text: long, After: []int{0}}, {Title: "c", Text: "d", After: []int{0}, Heavy: true}, {Title: "e", Text: "f", After: []int{1, 2}}}
	d := chart.Graph("a flow", nodes)
	if faults := charttest.Faults(d); len(faults) > 0 {
		t.Errorf("the picture has faults: %q", faults)
	}
	heights := map[string]float64{}
	for _, s := range d.Shapes {
		if text, ok := s.(chart.Text); ok {
			heights[text.Text] = text.At.Y
		}
	}
	if !(heights["a"] < heights["c"] && heights["c"] < heights["e"]) || len(heights) != 7 {
		t.Errorf("the texts are at %v", heights)
	}
}
