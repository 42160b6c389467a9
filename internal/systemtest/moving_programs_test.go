package systemtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

// TestExportedJobsAreEnqueued runs the program of docs/moving.md twice.
func TestExportedJobsAreEnqueued(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(blocks(t, "docs/moving.md", "go")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
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
