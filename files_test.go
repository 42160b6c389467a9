package falldue

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFilesMakeNoCircle: no file of the package uses, through other files or directly,
// a file that uses it. Uses are those of package-level names; a method is used where
// its receiver is.
func TestFilesMakeNoCircle(t *testing.T) {
	t.Parallel()
	uses := fileUses(t, ".")
	if circle := circleOf(uses); circle != nil {
		t.Errorf("files use each other: %s", strings.Join(circle, " → "))
	}
	uses["errors.go"] = append(uses["errors.go"], "queue.go")
	if circleOf(uses) == nil {
		t.Error("a circle that was made is not found")
	}
}

// fileUses returns which files of a package each of its files uses.
func fileUses(t *testing.T, dir string) map[string][]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	set, files, home := token.NewFileSet(), map[string]*ast.File{}, map[string]string{}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(set, name, nil, 0); err != nil {
			t.Fatal(err)
		}
		for declared := range files[name].Scope.Objects {
			home[declared] = name
		}
	}
	uses := map[string][]string{}
	for name, f := range files {
		for _, id := range f.Unresolved { // names of other files, of packages and of the language
			if other := home[id.Name]; other != "" && !slices.Contains(uses[name], other) {
				uses[name] = append(uses[name], other)
			}
		}
	}
	return uses
}

// circleOf returns files each of which uses the next, and the last one the first, or
// nil if there are none.
func circleOf(uses map[string][]string) []string {
	clear := map[string]bool{} // files from which no circle is reached
	var visit func(path []string) []string
	visit = func(path []string) []string {
		last := path[len(path)-1]
		if clear[last] {
			return nil
		}
		for _, next := range uses[last] {
			if i := slices.Index(path, next); i >= 0 {
				return append(path[i:], next)
			}
			if circle := visit(append(slices.Clip(path), next)); circle != nil {
				return circle
			}
		}
		clear[last] = true
		return nil
	}
	for name := range uses {
		if circle := visit([]string{name}); circle != nil {
			return circle
		}
	}
	return nil
}
