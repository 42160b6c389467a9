// Package start_test runs the programs of README.md and of the pages "Get started" as readers do.
package start_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// program is a program that pages show.
type program struct {
	folder   string
	pages    []string
	variable string // has the DSN
}

func programOf(engine string) program {
	switch engine {
	case testdb.Postgres:
		return program{"postgres", []string{"docs/start-postgresql.md"}, "DATABASE_URL"}
	case testdb.SQLite:
		return program{"sqlite", []string{"README.md", "docs/start-sqlite.md"}, ""}
	default: // MySQL, and those that speak its protocol
		return program{"mysql", []string{"docs/start-mysql.md"}, "DATABASE_DSN"}
	}
}

// TestProgramsOfPagesRunAsPasted pastes the programs into an empty module, runs them, waits for the
// line that the pages promise, and presses Ctrl-C.
func TestProgramsOfPagesRunAsPasted(t *testing.T) {
	const promised = "attempt 2: sent the invoice of order 1"
	testdb.Each(t, func(t *testing.T, engine string) {
		p := programOf(engine)
		pasted := p.pasted(t, promised)

		folder := t.TempDir()
		write(t, folder, "main.go", pasted)
		write(t, folder, "go.sum", read(t, "go.sum"))
		root, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		run(t, folder, "go", "mod", "init", "shop")
		run(t, folder, "go", "mod", "edit", "-require=github.com/falldue/falldue@v0.0.0", "-replace=github.com/falldue/falldue="+root)
		run(t, folder, "go", "build", "-mod=mod", "-o", "shop", ".")

		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "shop"))
		cmd.Dir, cmd.Stderr = folder, os.Stderr
		if p.variable != "" {
			cmd.Env = append(os.Environ(), p.variable+"="+testdb.DSN(t, engine))
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != promised {
			t.Errorf("it prints %q, and not %q", lines.Text(), promised)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ends with %v after SIGTERM", err)
		}
	})
}

// pasted returns the program as its pages show it, which is as the file has it.
func (p program) pasted(t *testing.T, promised string) string {
	t.Helper()
	code := read(t, "examples/start/"+p.folder+"/main.go")
	for _, page := range p.pages {
		text := read(t, page)
		block := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindStringSubmatch(text)
		if len(block) < 2 || block[1] != code {
			t.Errorf("%s shows another program than examples/start/%s/main.go", page, p.folder)
		}
		if !strings.Contains(text, promised) {
			t.Errorf("%s does not show what its program prints: %q", page, promised)
		}
	}
	return code
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a command of go. The cache of modules of a fresh machine lacks files go.mod of old releases, which it downloads.
func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}
