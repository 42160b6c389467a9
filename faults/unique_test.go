package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestUniqueKeysUnderFaults: enqueuers and workers are killed at random. Afterwards no task
// was stored before the one that had its key before was finished.
func TestUniqueKeysUnderFaults(t *testing.T) {
	program := buildProgram(t)
	for _, engine := range testdb.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			role := Role{
				Driver: testdb.Drivers(engine)[0], DSN: testdb.DSN(t, engine), Folder: t.TempDir(), Seed: rand.Uint64(),
				Handlers: 8, Connections: 12, Lease: 2 * time.Second, Longest: 100 * time.Millisecond, Policy: policies[0],
			}
			ctx, release := untilStalled(t.Context(), role.Folder)
			defer release()
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
		page, err := ops.New(q).Tasks(ctx, ops.Filter{}, ops.ListOptions{After: n, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Tasks) > 0 {
			return
		}
		<-tick.C
	}
}

// TestCheckerWatchesUniqueKeys: a task that was stored while another one held its key is
// found, by each scope and whether it may take the place of one that waits.
func TestCheckerWatchesUniqueKeys(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	const unseen = -1
	// The holder is stored at second 10, claimed first at 12 and ends at 20.
	for name, c := range map[string]struct {
		unique        string
		stored, claim int64 // of the next; of the holder
		doubled       int
	}{
		"while unfinished, after the end":              {"u1", 20, 12, 0},
		"while unfinished, before the end":             {"u1", 19, 12, 1},
		"while waiting, after the claim":               {"w1", 12, 12, 0},
		"while waiting, before the claim":              {"w1", 11, 12, 1},
		"while waiting, of a claim that nobody saw":    {"w1", 11, unseen, 0},
		"for a second, after it":                       {"f1", 11, 12, 0},
		"for a second, within it":                      {"f1", 10, 12, 1},
		"replacing, after the claim":                   {"r1", 13, 12, 0},
		"replacing, before the claim":                  {"r1", 11, 12, 1},
		"replacing while waiting, before the claim":    {"s1", 11, 12, 1},
		"replacing for a second, after it":             {"t1", 11, 12, 0},
		"replacing for a second, within it":            {"t1", 10, 12, 1},
		"replacing for a second, after an early claim": {"t1", 10, 10, 0},
		"replacing for a second, of an unseen claim":   {"t1", 10, unseen, 0},
	} {
		table := []Row{
			{ID: 1, Key: "a", Unique: c.unique, State: "done", CreatedAt: at(10), EndedAt: at(20), Fence: 2, Attempts: 2, Result: 2},
			{ID: 2, Key: "b", Unique: c.unique, State: "done", CreatedAt: at(c.stored), EndedAt: at(30)},
			{ID: 3, Key: "c", Unique: c.unique + "0", State: "done", CreatedAt: at(9), EndedAt: at(31)},
			{ID: 4, Key: "d", State: "done", CreatedAt: at(9), EndedAt: at(31)},
		}
		var history []Event
		if c.claim != unseen {
			history = []Event{{What: Claimed, Key: "a", ID: 1, Fence: 1, Outcome: fmt.Sprint(at(c.claim).UnixMicro())}}
		}
		v := Checker{MaxAttempts: 6}.Check(history, table)
		if v.Doubled != c.doubled {
			t.Errorf("%s: %d doubled, want %d: %q", name, v.Doubled, c.doubled, v.Findings)
		}
	}
}

// TestCheckerWatchesReplacements: arguments that replaced others and were lost are found, and so
// is a task that was not stored because of one that is not there.
func TestCheckerWatchesReplacements(t *testing.T) {
	t.Parallel()
	const id = 7
	enqueued := func(what, key string) Event { return Event{What: what, Process: processOf(key), Key: key, ID: id} }
	ran := func(key string, id, fence int64) []Event {
		e := Event{Process: "w", Key: key, ID: id, Fence: fence, Attempt: int(fence)}
		start, end := e, e
		start.What, end.What, end.Outcome = Started, Ended, OutcomeDone
		return []Event{start, end}
	}
	row := func(key string, id int64) Row {
		return Row{ID: id, Key: key, Unique: "r1", State: "done", Attempts: 1, Fence: 1, Result: 1}
	}
	for name, c := range map[string]struct {
		history       []Event
		table         []Row
		lost, doubled int
	}{
		"never replaced": {
			append(ran("e-1~", id, 1), enqueued(Acknowledged, "e-1~")), []Row{row("e-1~", id)}, 0, 0,
		},
		"replaced": {
			append(ran("f-5~", id, 1), enqueued(Acknowledged, "e-1~"), enqueued(Existed, "f-5~")), []Row{row("f-5~", id)}, 0, 0,
		},
		"replaced twice": {
			append(ran("f-9~", id, 1), enqueued(Acknowledged, "e-1~"), enqueued(Existed, "f-5~"), enqueued(Existed, "f-9~")), []Row{row("f-9~", id)}, 0, 0,
		},
		"replaced by two at once": {
			append(ran("f-5~", id, 1), enqueued(Acknowledged, "e-1~"), enqueued(Existed, "f-5~"), enqueued(Existed, "g-9~")), []Row{row("f-5~", id)}, 0, 0,
		},
		"replaced by one that was not acknowledged": {
			append(ran("f-5~", id, 1), enqueued(Acknowledged, "e-1~")), []Row{row("f-5~", id)}, 0, 0,
		},
		"not replaced though acknowledged": {
			append(ran("e-1~", id, 1), enqueued(Acknowledged, "e-1~"), enqueued(Existed, "f-5~")), []Row{row("e-1~", id)}, 1, 0,
		},
		"the second replacement is lost": {
			append(ran("f-5~", id, 1), enqueued(Acknowledged, "e-1~"), enqueued(Existed, "f-5~"), enqueued(Existed, "f-9~")), []Row{row("f-5~", id)}, 1, 0,
		},
		"replaced after its last run had begun": {
			append(ran("e-1~", id, 1), enqueued(Acknowledged, "e-1~"), enqueued(Existed, "f-5~")), []Row{row("f-5~", id)}, 1, 0,
		},
		"not stored because of nobody": {
			[]Event{{What: Existed, Process: "e", Key: "e-3", ID: 9}}, nil, 1, 0,
		},
		"one enqueue, two tasks": {
			append(ran("f-5~", id, 1), ran("f-5~", 8, 1)...), []Row{row("f-5~", id), row("g-6~", 8)}, 1, 1,
		},
		"not in the table": {
			[]Event{enqueued(Acknowledged, "e-1~")}, nil, 1, 0,
		},
	} {
		for i := range c.table { // one after the other
			c.table[i].CreatedAt, c.table[i].EndedAt = time.Unix(int64(10*i), 0), time.Unix(int64(10*i+9), 0)
		}
		v := Checker{MaxAttempts: 6}.Check(c.history, c.table)
		if v.Lost != c.lost || v.Doubled != c.doubled || v.StaleSettles > 0 {
			t.Errorf("%s: %d lost and %d doubled, want %d and %d: %q", name, v.Lost, v.Doubled, c.lost, c.doubled, v.Findings)
		}
	}
}
