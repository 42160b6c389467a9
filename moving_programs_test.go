package falldue_test

import (
	"bytes"
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
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
		for _, block := range blocks(t, page, "go") {
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

// TestExportedJobsAreEnqueued runs the program of docs/moving.md twice.
func TestExportedJobsAreEnqueued(t *testing.T) {
	t.Parallel()
	file := writeFile(t, filepath.Join(t.TempDir(), "main.go"), blocks(t, "docs/moving.md", "go")[0])
	binary := strings.TrimSuffix(file, ".go")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testdb.Each(t, func(t *testing.T, engine string) { checkEnqueued(t, binary, engine) })
}

func checkEnqueued(t *testing.T, binary, engine string) {
	driver := testdb.Drivers(engine)[0]
	if engine == testdb.Postgres {
		driver = "pgx"
	}
	dsn := testdb.DSN(t, engine)
	db := sqlx.MustConnect(driver, dsn)
	defer db.Close()
	q := migrated(t, db)
	lines := `{"id": "a", "queue": "default", "kind": "invoice:send", "payload": {"order": 1}, "metadata": {"trace": "t1"}, "attempts": 26}
{"id": "b", "queue": "low", "kind": "Shop::InvoiceJob", "payload": [2], "at": 2114391845.25, "attempts": 0}
{"id": "A", "queue": "low", "kind": "Shop::InvoiceJob", "payload": [3], "at": 2114391846, "attempts": 0}
`
	for i, want := range []string{"moved 3\n", "moved 0\n"} {
		program := exec.CommandContext(t.Context(), binary)
		program.Env = append(os.Environ(), "DATABASE_DRIVER="+driver, "DATABASE_URL="+dsn)
		program.Stdin = strings.NewReader(lines)
		var stderr bytes.Buffer
		program.Stderr = &stderr
		if out, err := program.Output(); err != nil || string(out) != want {
			t.Fatalf("run %d printed %q (error %v), want %q\n%s", i, out, err, want, stderr.String())
		}
	}
	list := tasks(t, q)
	if len(list) != 3 {
		t.Fatalf("got %d tasks, want 3", len(list))
	}
	if a := list[0]; a.Kind != "invoice:send" || a.Queue != "default" || a.MaxAttempts != 26 || string(a.Payload) != `{"order":1}` || a.Metadata["trace"] != "t1" || a.UpdatedAt.After(a.Now) {
		t.Errorf("got %+v", a)
	}
	if b := list[1]; b.Kind != "Shop::InvoiceJob" || b.Queue != "low" || b.MaxAttempts != 0 || string(b.Payload) != `[2]` || b.UpdatedAt.UnixMilli() != 2114391845250 {
		t.Errorf("got %+v", b)
	}
}
