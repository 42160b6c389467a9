package browser

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/chart/charttest"
)

// picture is an SVG, and the widths in pixels at which it is looked at.
type picture struct {
	name, svg string
	widths    []int
}

// pictures returns those of the documents, as wide as on a page and on a phone, and those that
// are hard to draw.
func pictures(t *testing.T) (list []picture) {
	t.Helper()
	docs := os.DirFS(filepath.Join("..", "..", "..", "docs"))
	err := fs.WalkDir(docs, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".svg" {
			return err
		}
		svg, err := fs.ReadFile(docs, path)
		list = append(list, picture{path, string(svg), []int{600, 360}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Errorf("found %d pictures in docs", len(list))
	}
	for name, figure := range charttest.Figures() {
		for _, width := range charttest.Widths {
			list = append(list, picture{fmt.Sprintf("%s, drawn for %v pixels", name, width), figure.Draw(width).SVG(chart.Auto), []int{int(width)}})
		}
	}
	return list
}

// box is a rectangle of a text.
type box struct {
	Text                     string
	Left, Top, Right, Bottom float64
	// Font is the size of the text, in pixels of the screen.
	Font float64
}

// check compares the boxes of a picture's texts with each other and with its size.
func check(t *testing.T, name string, boxes []box, width, height float64) {
	t.Helper()
	if len(boxes) == 0 {
		t.Errorf("%s: no text", name)
	}
	const rounding = 0.5
	for i, b := range boxes {
		if b.Left < -rounding || b.Top < -rounding || b.Right > width+rounding || b.Bottom > height+rounding {
			t.Errorf("%s: %q leaves the picture of %.0f × %.0f pixels: %.1f", name, b.Text, width, height, []float64{b.Left, b.Top, b.Right, b.Bottom})
		}
		for _, o := range boxes[:i] {
			if b.Left < o.Right-rounding && o.Left < b.Right-rounding && b.Top < o.Bottom-rounding && o.Top < b.Bottom-rounding {
				t.Errorf("%s: %q overlaps %q", name, b.Text, o.Text)
			}
		}
	}
}

// requireProgram returns the path of a program.
func requireProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v; make pictures installs it on Debian", err)
	}
	return path
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
