package falldue_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeShowsTheExample holds the README's program to the Example, which
// is compiled and run.
func TestReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	_, example, _ := strings.Cut(readFile(t, "example_test.go"), "\n)\n\n") // the imports
	example = strings.Replace(example, "func Example() {", "func main() {", 1)
	example = regexp.MustCompile(`\t// Output:.*\n`).ReplaceAllString(example, "")
	_, block, _ := strings.Cut(readFile(t, "README.md"), "```go\n")
	block, _, _ = strings.Cut(block, "```\n")
	if block != example {
		t.Errorf("the README shows\n%s\nbut example_test.go has\n%s", block, example)
	}
}

// TestContributingShowsTheLayers holds the line with the arrows to doc.go's.
func TestContributingShowsTheLayers(t *testing.T) {
	t.Parallel()
	if line := layersLine(t); !strings.Contains(readFile(t, "CONTRIBUTING.md"), line) {
		t.Errorf("CONTRIBUTING.md lacks the line of doc.go: %s", line)
	}
}

// documents lists the files that people read: those of the root and of docs.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(files, more)
}

var (
	fenced  = regexp.MustCompile("(?s)```.*?\n```\n")
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	links := 0
	for _, file := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(readFile(t, file), ""), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(found[1], "#")
			target := file
			if name != "" {
				target = filepath.Join(filepath.Dir(file), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", file, found[1], err)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, target)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", file, found[1])
			}
		}
	}
	if links == 0 {
		t.Error("no document links to any file")
	}
}

// anchors lists the headings of a document as links spell them.
func anchors(text string) (list []string) {
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(strings.ToLower(found[1]), " ", "-"))
	}
	return list
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
