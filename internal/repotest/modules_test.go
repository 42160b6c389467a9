package repotest

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
	for _, file := range []string{"go.mod", "bench/go.mod", "cmd/falldue/go.mod", "examples/moving/go.mod", "examples/telemetry/go.mod", "examples/transactions/go.mod", "examples/webhooks/go.mod", "faults/go.mod", "internal/testdb/serve/go.mod", "otelfalldue/go.mod", "promfalldue/go.mod"} {
		if !slices.Contains(files, file) {
			t.Errorf("the modules are %v, without %s", files, file)
		}
	}
	directive := goDirective.FindStringSubmatch(readFile(t, "go.mod"))
	if directive == nil {
		t.Fatal("go.mod states no Go release")
	}
	for _, file := range files {
		if file == "internal/testdb/vitess/go.mod" {
			continue // Vitess asks for a newer release, and only "make vitess" builds it
		}
		if text := readFile(t, file); !strings.Contains(text, "\n"+directive[0]+"\n") || strings.Contains(text, "\ntoolchain ") {
			t.Errorf("%s states another Go release than go.mod, which has %q", file, directive[0])
		}
	}
	if want := "Go " + directive[1] + " or newer"; !strings.Contains(readFile(t, "README.md"), want) {
		t.Errorf("README.md does not state %q", want)
	}
}

// TestLibraryRequiresNoModulesOfOthers: modules that only the fault suite, the command,
// examples or test servers need are not in the go.mod that applications depend on.
func TestLibraryRequiresNoModulesOfOthers(t *testing.T) {
	t.Parallel()
	library := readFile(t, "go.mod")
	for path, file := range map[string]string{
		"github.com/agiledragon/gomonkey/v2": "faults/go.mod", "github.com/Shopify/toxiproxy/v2": "faults/go.mod",
		"github.com/spf13/cobra": "cmd/falldue/go.mod", "github.com/guptarohit/asciigraph": "cmd/falldue/go.mod", "git.sr.ht/~sbinet/gg": "cmd/falldue/go.mod",
		"gorm.io/gorm": "examples/transactions/go.mod", "entgo.io/ent": "examples/transactions/go.mod", "github.com/uptrace/bun": "examples/transactions/go.mod",
		"github.com/hibiken/asynq": "examples/moving/go.mod", "github.com/alicebob/miniredis/v2": "examples/moving/go.mod",
		"github.com/redis/go-redis/v9": "examples/moving/go.mod", "github.com/riverqueue/river": "examples/moving/go.mod",
		"github.com/testcontainers/testcontainers-go": "internal/testdb/serve/go.mod", "github.com/moby/moby": "internal/testdb/serve/go.mod",
		"go.opentelemetry.io/otel": "otelfalldue/go.mod", "go.opentelemetry.io/otel/exporters/": "examples/telemetry/go.mod", "github.com/prometheus/client_golang": "promfalldue/go.mod",
		"github.com/docker/": "internal/testdb/serve/go.mod", "github.com/containerd/": "internal/testdb/serve/go.mod",
	} {
		if strings.Contains(library, path) {
			t.Errorf("go.mod requires %s", path)
		}
		if !strings.Contains(readFile(t, file), path) {
			t.Errorf("%s does not require %s; remove it from this test", file, path)
		}
	}
}

// TestExportersReplaceNothing: applications ignore the replace of a module that they import, and would
// build with another release of the library than its tests.
func TestExportersReplaceNothing(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"otelfalldue", "promfalldue"} {
		if strings.Contains(readFile(t, folder+"/go.mod"), "\nreplace ") || !strings.Contains(readFile(t, folder+"/go.work"), "\nreplace "+module+" => ..\n") {
			t.Errorf("%s replaces modules in its go.mod, or its go.work does not replace the library", folder)
		}
	}
}

// TestReadmeInstallsTheCommandAsItCanBe: "go install" with a version refuses a module
// whose go.mod has a replace directive, as that of the command has.
func TestReadmeInstallsTheCommandAsItCanBe(t *testing.T) {
	t.Parallel()
	const folder = "cmd/falldue"
	replaces := strings.Contains(readFile(t, folder+"/go.mod"), "\nreplace ")
	for _, file := range documents(t) {
		if filepath.ToSlash(file) == "docs/releasing.md" {
			continue // it installs from a release, whose command replaces nothing
		}
		if strings.Contains(readFile(t, file), "go install "+module+"/"+folder+"@") == replaces && (replaces || file == "README.md") {
			t.Errorf("%s: the go.mod of the command has a replace directive: %v; go install works without one only", file, replaces)
		}
	}
	if replaces && !strings.Contains(readFile(t, "README.md"), "go -C falldue/"+folder+" install .") {
		t.Error("README.md does not say how to install the command from a clone")
	}
}
