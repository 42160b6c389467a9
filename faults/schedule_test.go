package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// TestSchedulesUnderFaults: processes that run schedules and their tasks are killed at random,
// right after ticks, and their clocks are wrong by an hour. Afterwards each tick has exactly
// one task, which was enqueued when the tick was due by the database's clock.
func TestSchedulesUnderFaults(t *testing.T) {
	program := buildProgram(t)
	for _, engine := range testdb.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			const workers, schedules = 4, 10
			role := Role{
				Driver: testdb.Drivers(engine)[0], DSN: testdb.DSN(t, engine), Folder: t.TempDir(), Seed: rand.Uint64(), Schedules: schedules,
				Handlers: 4, Connections: 8, Lease: 2 * time.Second, Longest: 100 * time.Millisecond, Policy: policies[0],
			}
			ctx, release := untilStalled(t.Context(), role.Folder)
			defer release()
			_, q := prepare(t, role)
			processes := make([]*Process, workers)
			fill := func(i, generation int) {
				r := named(role, fmt.Sprintf("worker%d-%d", i+1, generation))
				if canJump && engine != testdb.SQLite { // whose clock is that of the process
					r.ClockOff = time.Duration(1-2*(i%2)) * time.Hour
				}
				processes[i] = launch(t, program, workerPart, r)
			}
			for i := range processes {
				fill(i, 0)
			}
			kills := 12
			if testing.Short() {
				kills = 3
			}
			for n := range kills {
				stored(ctx, t, q, int64(n*schedules+rand.IntN(schedules)))
				for i := range processes {
					if rand.IntN(2) == 0 {
						processes[i].kill()
						fill(i, n+1)
					}
				}
			}
			stored(ctx, t, q, int64((kills+1)*schedules))
			for _, p := range processes {
				if err := p.stop(ctx); err != nil {
					t.Error(err)
				}
			}
			n := checkTicks(ctx, t, q, schedules)
			t.Logf("%d ticks, %d rounds of kills", n, kills)
		})
	}
}

// maxLate is how late a tick may be in a process of the test: less than its clock is wrong.
const maxLate = 5 * time.Minute

// checkTicks checks that each tick of each schedule has one task, and returns the number of
// tasks.
func checkTicks(ctx context.Context, t *testing.T, q *falldue.Queue, schedules int) (n int) {
	t.Helper()
	count := map[string]int{}
	for task := range tasks(ctx, t, q) {
		var job Job
		if err := json.Unmarshal(task.Payload, &job); err != nil {
			t.Fatal(err)
		}
		name, tick, ok := tickOf(job.Key)
		if late := task.CreatedAt.Sub(tick); !ok || late < 0 || late > maxLate {
			t.Errorf("%s: the task of the tick at %v was enqueued %v after it", name, tick, late)
		}
		count[job.Key]++
		n++
	}
	list, err := periodic.List(ctx, q)
	if err != nil || len(list) != schedules {
		t.Fatalf("there are %d schedules (error %v), want %d", len(list), err, schedules)
	}
	for _, s := range list {
		for at := s.Defined.Add(time.Second); at.Before(s.Next); at = at.Add(time.Second) {
			key := tickKey(s.Name, at)
			if count[key] != 1 {
				t.Errorf("%s: the tick at %v has %d tasks, want 1", s.Name, at, count[key])
			}
			delete(count, key)
		}
	}
	if len(count) > 0 {
		t.Errorf("tasks of ticks that were not: %v", count)
	}
	return n
}

func TestTicksWithoutTaskAreFound(t *testing.T) {
	t.Parallel()
	first := time.Now()
	var table []Row
	for _, seconds := range []int{3, 0, 1, 4, 6} {
		table = append(table, Row{Key: tickKey("a", first.Add(time.Duration(seconds)*time.Second)), State: "done"})
	}
	table = append(table, Row{Key: tickKey("b", first), State: "done"}, Row{Key: "c", State: "done"})
	if v := (Checker{}).Check(nil, table); v.Lost != 2 || v.Doubled != 0 {
		t.Errorf("%d lost, %d doubled, want 2 and 0: %q", v.Lost, v.Doubled, v.Findings)
	}
	if v := (Checker{}).Check(nil, append(table, table[0])); v.Doubled != 1 {
		t.Errorf("%d doubled, want 1: %q", v.Doubled, v.Findings)
	}
}

// tasks goes through all tasks.
func tasks(ctx context.Context, t *testing.T, q *falldue.Queue) iter.Seq[falldue.TaskInfo] {
	t.Helper()
	return func(yield func(falldue.TaskInfo) bool) {
		for after := int64(0); ; {
			page, err := ops.New(q).Tasks(ctx, ops.Filter{}, ops.ListOptions{After: after, Limit: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Tasks) == 0 {
				return
			}
			for _, info := range page.Tasks {
				if after = info.ID; !yield(info) {
					return
				}
			}
		}
	}
}
