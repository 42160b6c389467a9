package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// tasksVariable names the environment variable with the number of tasks that
// TestHundredThousand runs on each engine.
const tasksVariable = "FALLDUE_TEST_TASKS"

// TestHundredThousand runs tasks with random failures in four worker processes, and
// compares their histories with the database.
func TestHundredThousand(t *testing.T) {
	tasks, err := numberOfTasks()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if text := os.Getenv("FALLDUE_TEST_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FALLDUE_TEST_SEED: %v", err)
		}
	}
	t.Logf("%d tasks, FALLDUE_TEST_SEED=%d", tasks, seed)
	program := buildProgram(t)
	for _, engine := range testdb.Engines(t) { // one engine at a time has the machine to itself
		t.Run(engine, func(t *testing.T) {
			role := Role{
				Driver: testdb.Drivers(engine)[0], DSN: testdb.DSN(t, engine), Folder: t.TempDir(), Seed: seed,
				Handlers: 32, Connections: 12, Lease: time.Hour, Longest: 20 * time.Millisecond, Batch: 500, Policy: policies[0],
			}
			ctx, release := untilStalled(t.Context(), role.Folder)
			defer release()
			began := time.Now()
			db, q := prepare(t, role)
			workers := make([]*Process, 4)
			for i := range workers {
				workers[i] = launch(t, program, workerPart, named(role, fmt.Sprint("worker", i+1)))
			}
			enqueuer := named(role, "enqueuer")
			enqueuer.Tasks = tasks
			if err := launch(t, program, enqueuerPart, enqueuer).wait(ctx); err != nil {
				t.Fatal(err)
			}
			enqueued := time.Since(began)
			if err := drained(ctx, q); err != nil {
				t.Fatal(err)
			}
			for _, w := range workers {
				if err := w.stop(ctx); err != nil {
					t.Error(err)
				}
			}
			worked := time.Since(began)
			v := judge(t, role.Folder, db, q, Checker{Calm: true, MaxAttempts: maxAttempts})
			if !v.OK() || v.Tasks != tasks {
				t.Errorf("of %d tasks %d were acknowledged, %d lost, %d doubled, %d with stale settles, %d early, %d exceeded:", tasks, v.Tasks, v.Lost, v.Doubled, v.StaleSettles, v.Early, v.Exceeded)
				for _, finding := range v.Findings {
					t.Error(finding)
				}
			}
			counts, err := ops.New(q).Counts(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("enqueued after %v, worked off after %v, compared after %v: %d attempts, %+v", enqueued, worked, time.Since(began), v.Attempts, counts)
		})
	}
}

func numberOfTasks() (int, error) {
	if text := os.Getenv(tasksVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("%s=%q: must be a whole number from 1", tasksVariable, text)
		}
		return n, nil
	}
	if testing.Short() {
		return 2_000, nil
	}
	return 100_000, nil
}

// program returns the program of all processes. It is built without the race
// detector, which would take most of its time.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programFolder, "run")
	if said, err := exec.Command("go", "build", "-o", path, "./run").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program of the processes: %w: %s", err, said)
	}
	return path, nil
})

// programFolder is where the program is built.
var programFolder string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if programFolder, err = os.MkdirTemp("", "falldue-faults-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(programFolder) }()
	testdb.SetParallel()
	return m.Run()
}

func buildProgram(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func named(r Role, name string) Role {
	r.Name = name
	return r
}

// prepare makes the tables of a run.
func prepare(t *testing.T, role Role) (*sqlx.DB, *falldue.Queue) {
	t.Helper()
	role.Name = "checker"
	db, q, err := role.open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.MustExec(createEffects)
	return db, q
}

// launch starts a process that ends with the test.
func launch(t *testing.T, program, part string, r Role) *Process {
	t.Helper()
	p, err := start(program, part, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func judge(t *testing.T, folder string, db *sqlx.DB, q *falldue.Queue, c Checker) Verdict {
	t.Helper()
	history, err := ReadHistories(folder)
	if err != nil {
		t.Fatal(err)
	}
	table, err := ReadTable(t.Context(), db, q)
	if err != nil {
		t.Fatal(err)
	}
	return c.Check(history, table)
}
