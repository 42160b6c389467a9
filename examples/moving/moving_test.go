package moving_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// task is what must hold of a task that was a job.
type task struct {
	Queue, Kind, Payload string
	Metadata             map[string]string
	MaxAttempts          int
	At                   time.Time // zero if it is due
}

// checkMove exports the jobs of a Redis server by a program of this module and enqueues them by
// another, on each engine, and compares the tasks.
func checkMove(t *testing.T, program, redis string, want []task) {
	t.Helper()
	dir := t.TempDir()
	run(t, nil, nil, "go", "build", "-o", dir+string(filepath.Separator), "./"+program, "./enqueue")
	testdb.Each(t, func(t *testing.T, engine string) {
		if diff := cmp.Diff(want, move(t, filepath.Join(dir, program), filepath.Join(dir, "enqueue"), redis, engine)); diff != "" {
			t.Errorf("the tasks (-want +got):\n%s", diff)
		}
	})
}

// move runs both programs twice, and returns the tasks.
func move(t *testing.T, export, enqueue, redis, engine string) (tasks []task) {
	t.Helper()
	driver := testdb.Drivers(engine)[0]
	if engine == testdb.Postgres {
		driver = "pgx"
	}
	dsn := testdb.DSN(t, engine)
	db, err := testdb.OpenDSN(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := []string{"REDIS_URL=" + redis, "DATABASE_DRIVER=" + driver, "DATABASE_URL=" + dsn}
	moved := 0
	for i := range 2 {
		lines := run(t, env, nil, export)
		if i == 0 {
			moved = bytes.Count(lines, []byte("\n"))
		}
		if got, want := string(run(t, env, lines, enqueue)), fmt.Sprintln("moved", moved*(1-i)); got != want {
			t.Errorf("run %d printed %q, want %q", i, got, want)
		}
	}
	page, err := ops.New(q).Tasks(t.Context(), ops.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range page.Tasks {
		if info.State != falldue.StateOpen || info.Attempts != 0 {
			t.Errorf("got %+v, want an open task without attempts", info)
		}
		moved := task{Queue: info.Queue, Kind: info.Kind, Payload: string(info.Payload), Metadata: info.Metadata, MaxAttempts: info.MaxAttempts}
		if info.UpdatedAt.After(info.Now) {
			moved.At = info.UpdatedAt.UTC()
		}
		tasks = append(tasks, moved)
	}
	return tasks
}

// run runs a program and returns what it prints.
func run(t *testing.T, env []string, input []byte, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env, cmd.Stdin, cmd.Stderr = append(os.Environ(), env...), bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return out
}
