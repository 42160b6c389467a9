package falldue_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goDirective matches the oldest Go release that a go.mod allows.
var goDirective = regexp.MustCompile(`(?m)^go (\d+\.\d+)(?:\.\d+)?$`)

// moduleFiles returns the go.mod of each module of the repository.
func moduleFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "go.mod" {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestModulesStateOneGoRelease: README.md and all modules state the same oldest Go
// release. "make portable" compiles everything with it.
func TestModulesStateOneGoRelease(t *testing.T) {
	t.Parallel()
	files := moduleFiles(t)
	for _, file := range []string{"go.mod", "bench/go.mod", "faults/go.mod"} {
		if !slices.Contains(files, file) {
			t.Errorf("the modules are %v, without %s", files, file)
		}
	}
	directive := goDirective.FindStringSubmatch(readFile(t, "go.mod"))
	if directive == nil {
		t.Fatal("go.mod states no Go release")
	}
	for _, file := range files {
		if text := readFile(t, file); !strings.Contains(text, "\n"+directive[0]+"\n") || strings.Contains(text, "\ntoolchain ") {
			t.Errorf("%s states another Go release than go.mod, which has %q", file, directive[0])
		}
	}
	if want := "Go " + directive[1] + " or newer"; !strings.Contains(readFile(t, "README.md"), want) {
		t.Errorf("README.md does not state %q", want)
	}
}

// TestLibraryRequiresNoTestOnlyModules: modules that only the fault suite needs are not
// in the go.mod that applications depend on.
func TestLibraryRequiresNoTestOnlyModules(t *testing.T) {
	t.Parallel()
	library := readFile(t, "go.mod")
	for _, path := range []string{"github.com/agiledragon/gomonkey/v2", "github.com/Shopify/toxiproxy/v2"} {
		if strings.Contains(library, path) {
			t.Errorf("go.mod requires %s", path)
		}
		if !strings.Contains(readFile(t, "faults/go.mod"), path) {
			t.Errorf("faults/go.mod does not require %s; remove it from this test", path)
		}
	}
}
