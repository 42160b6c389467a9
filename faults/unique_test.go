package faults

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
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
			_, q := prepare(t, role)
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
			n := checkHolders(ctx, t, q)
			t.Logf("%d tasks, %d kills", n, kills)
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

// tasks goes through all tasks.
func tasks(ctx context.Context, t *testing.T, q *falldue.Queue) iter.Seq[falldue.TaskInfo] {
	t.Helper()
	return func(yield func(falldue.TaskInfo) bool) {
		for after := int64(0); ; {
			list, err := q.Tasks(ctx, falldue.TaskFilter{After: after, Limit: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				return
			}
			for _, info := range list {
				if after = info.ID; !yield(info) {
					return
				}
			}
		}
	}
}

// checkHolders checks that no task was stored while another one with its key was not
// finished, and returns the number of tasks.
func checkHolders(ctx context.Context, t *testing.T, q *falldue.Queue) int {
	t.Helper()
	byKey, n := map[string][]falldue.TaskInfo{}, 0
	for info := range tasks(ctx, t, q) {
		byKey[string(info.Payload)] = append(byKey[string(info.Payload)], info)
		n++
	}
	for key, list := range byKey {
		slices.SortFunc(list, func(a, b falldue.TaskInfo) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.UpdatedAt.Compare(b.UpdatedAt))
		})
		for i, next := range list[1:] {
			if holder := list[i]; next.CreatedAt.Before(holder.UpdatedAt) {
				t.Errorf("%s: task %d was stored at %v, before task %d was %s at %v", key, next.ID, next.CreatedAt, holder.ID, holder.State, holder.UpdatedAt)
			}
		}
	}
	return n
}
