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

var link = regexp.MustCompile(`\]\(([^)]+)\)`)

func TestDocumentsLinkToFiles(t *testing.T) {
	t.Parallel()
	links := 0
	for _, file := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(readFile(t, file), -1) {
			target, _, _ := strings.Cut(found[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s: %v", file, found[1], err)
			}
		}
	}
	if links == 0 {
		t.Error("no document links to any file")
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
