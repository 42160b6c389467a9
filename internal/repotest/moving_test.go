package repotest

import (
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsOfMovingCompile compiles the programs of docs/moving. Those with other queues
// are files of examples/moving, a module of its own, whose tests run the exports.
func TestProgramsOfMovingCompile(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/moving/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := ""
	for _, folder := range []string{"", "*/", "*/*/"} {
		files, err := filepath.Glob("examples/moving/" + folder + "*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			examples += readFile(t, file)
		}
	}
	dir, packages := t.TempDir(), []string{}
	// The other programs are compiled together, as if they were packages of this module,
	// and are not linked.
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, page := range pages {
		before := len(packages)
		for _, block := range goBlocks(t, page) {
			if formatted, err := format.Source([]byte(block)); err != nil || string(formatted) != block {
				t.Errorf("%s: a block of Go is not formatted (error %v):\n%s", page, err, block)
			}
			text, isProgram := strings.CutPrefix(block, "package main\n")
			switch {
			case strings.Contains(examples, block): // compiled there
			case isProgram:
				folder := strings.TrimSuffix(page, ".md") + "-program"
				overlay.Replace[filepath.Join(folder, "main.go")] = writeFile(t, filepath.Join(dir, filepath.Base(folder)+".go"), "package program\n"+text)
				packages = append(packages, "./"+filepath.ToSlash(folder))
			case !strings.Contains(block, "faktory.NewJob("): // nothing compiles what Faktory has
				t.Errorf("%s: no file of examples/moving has\n%s", page, block)
			}
		}
		if len(packages) != before+1 {
			t.Errorf("%s has %d programs after the move, want 1", page, len(packages)-before)
		}
	}
	requireCompiled(t, "docs/moving.md", 1, "examples/moving/enqueue/main.go")
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	build := append([]string{"build", "-overlay", writeFile(t, filepath.Join(dir, "overlay.json"), string(text))}, packages...)
	if out, err := exec.CommandContext(t.Context(), "go", build...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
