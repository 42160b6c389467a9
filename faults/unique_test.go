package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestUniqueKeysUnderFaults: enqueuers and workers are killed at random. Afterwards no task
// was stored before the one that had its key before was finished.
func TestUniqueKeysUnderFaults(t *testing.T) {
	program := buildProgram(t)
	for _, engine := range testdb.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			role := Role{
				Driver: testdb.Drivers(engine)[0], DSN: testdb.DSN(t, engine), Folder: t.TempDir(), Seed: rand.Uint64(),
				Handlers: 8, Connections: 12, Lease: 2 * time.Second, Longest: 100 * time.Millisecond, Policy: policies[0],
			}
			db, q := prepare(t, role)
			parts := []string{workerPart, workerPart, uniquePart, uniquePart, uniquePart, uniquePart}
			processes := make([]*Process, len(parts))
			for i, part := range parts {
				processes[i] = launch(t, program, part, named(role, fmt.Sprint("process", i+1)))
			}
			kills := 25
			if testing.Short() {
				kills = 5
			}
			for n := range kills {
				stored(ctx, t, q, uniqueKeys+int64(n)*40) // so that each process has had some time
				i := rand.IntN(len(parts))
				processes[i].kill()
				processes[i] = launch(t, program, parts[i], named(role, fmt.Sprintf("process%d-%d", i+1, n)))
			}
			stop := func(part string) {
				for i, p := range processes {
					if parts[i] != part {
						continue
					}
					if err := p.stop(ctx); err != nil {
						t.Error(err)
					}
				}
			}
			stop(uniquePart)
			if err := drained(ctx, q); err != nil {
				t.Fatal(err)
			}
			stop(workerPart)
			v := judge(t, role.Folder, db, q, Checker{MaxAttempts: maxAttempts})
			if !v.OK() || v.Tasks == 0 {
				t.Errorf("of %d tasks: %q", v.Tasks, v.Findings)
			}
			t.Logf("%d tasks, %d kills", v.Tasks, kills)
		})
	}
}

// stored waits until the table has more than n tasks.
func stored(ctx context.Context, t *testing.T, q *falldue.Queue, n int64) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := q.Tasks(ctx, falldue.TaskFilter{After: n, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return
		}
		<-tick.C
	}
}

// TestCheckerWatchesUniqueKeys: a task that was stored while another one held its key is
// found.
func TestCheckerWatchesUniqueKeys(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	table := []Row{
		{Key: "a", Unique: "1", CreatedAt: at(1), EndedAt: at(3)},
		{Key: "b", Unique: "1", CreatedAt: at(3), EndedAt: at(5)},
		{Key: "c", Unique: "2", CreatedAt: at(4), EndedAt: at(9)},
		{Key: "d", Unique: "1", CreatedAt: at(4), EndedAt: at(6)},
		{Key: "e", CreatedAt: at(1), EndedAt: at(9)},
		{Key: "f", CreatedAt: at(1), EndedAt: at(9)},
	}
	list := holdersAtOnce(table)
	if len(list) != 1 || list[0].key != "d" {
		t.Errorf("found %v, want d alone", list)
	}
}
