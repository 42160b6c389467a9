package faults

import (
	"testing"
	"time"
)

// TestCheckerWatchesFlows: a task that runs before those after which it runs have ended is
// found, and so is one that runs, or does not, against its choice for dead ones.
func TestCheckerWatchesFlows(t *testing.T) {
	t.Parallel()
	const done, dead, cancelled, blocked = "done", "dead", "cancelled", "blocked"
	// Of the members e-1 and e-2 the second one's only run is from second 3 to 5, and e-3 runs
	// after both. The zero time of a run is none.
	type times struct{ from, to int64 }
	for name, c := range map[string]struct {
		first, second, third string // states
		choice               onDeath
		ran                  times // of the third
		first1               times
		early, lost          int
	}{
		"after both":                           {done, done, done, waitsForRetry, times{6, 7}, times{1, 2}, 0, 0},
		"before the end of the second":         {done, done, done, waitsForRetry, times{4, 7}, times{1, 2}, 1, 0},
		"before the second":                    {done, done, done, runsAnyway, times{2, 3}, times{1, 2}, 1, 0},
		"waits for ever":                       {done, done, blocked, waitsForRetry, times{}, times{1, 2}, 0, 1},
		"cancelled though all are done":        {done, done, cancelled, isCancelled, times{}, times{1, 2}, 0, 1},
		"opened and never run":                 {done, done, "open", waitsForRetry, times{}, times{1, 2}, 0, 1},
		"stays blocked after a death":          {dead, done, blocked, waitsForRetry, times{}, times{1, 2}, 0, 0},
		"runs after a death":                   {dead, done, done, waitsForRetry, times{6, 7}, times{1, 2}, 1, 0},
		"cancelled after a death, unasked":     {dead, done, cancelled, waitsForRetry, times{}, times{1, 2}, 0, 1},
		"cancelled by a death":                 {dead, done, cancelled, isCancelled, times{}, times{1, 2}, 0, 0},
		"cancelled by a cancelled one":         {cancelled, done, cancelled, isCancelled, times{}, times{}, 0, 0},
		"runs though it was to be cancelled":   {dead, done, done, isCancelled, times{6, 7}, times{1, 2}, 1, 0},
		"ran, and is cancelled":                {dead, done, cancelled, isCancelled, times{6, 7}, times{1, 2}, 1, 0},
		"not cancelled by a death":             {dead, done, blocked, isCancelled, times{}, times{1, 2}, 0, 1},
		"runs anyway":                          {dead, cancelled, done, runsAnyway, times{6, 7}, times{1, 2}, 0, 0},
		"does not run anyway":                  {dead, cancelled, blocked, runsAnyway, times{}, times{1, 2}, 0, 1},
		"runs anyway, before the second ended": {dead, done, done, runsAnyway, times{4, 7}, times{1, 2}, 1, 0},
		"at the first death":                   {dead, done, done, runsAtFirst, times{4, 5}, times{1, 2}, 0, 0},
		"before the first death":               {dead, done, done, runsAtFirst, times{4, 6}, times{1, 5}, 1, 0},
		"cancelled without a death":            {done, done, cancelled, runsAtFirst, times{}, times{1, 2}, 0, 0},
		"runs without a death":                 {done, cancelled, done, runsAtFirst, times{6, 7}, times{1, 2}, 1, 0},
		"waits though there was a death":       {dead, blocked, blocked, runsAtFirst, times{}, times{1, 2}, 0, 1},
		"waits for one that waits":             {done, blocked, blocked, runsAnyway, times{}, times{1, 2}, 0, 0},
		"runs before one that waits":           {done, blocked, done, runsAnyway, times{6, 7}, times{1, 2}, 1, 0},
	} {
		var history []Event
		var table []Row
		for i, state := range []string{c.first, c.second, c.third} {
			ran := []times{c.first1, {3, 5}, c.ran}[i]
			if i == 1 && (state == blocked || state == cancelled) {
				ran = times{}
			}
			r := Row{ID: int64(i + 1), Key: keyOf("e", i+1), State: state}
			if i == 1 && state == blocked { // it waits for the retry of a dead one
				table = append(table, Row{ID: 9, Key: "e-9", State: dead, Attempts: 9})
				r.After = []string{"e-9"}
			}
			if i == 2 {
				r.After, r.OnDeath = []string{"e-1", "e-2"}, c.choice
			}
			if ran.to > 0 {
				outcome := OutcomeDone
				if r.Fence, r.Attempts, r.Result = 1, 1, 1; state == dead {
					outcome, r.Result, r.Records = OutcomeDiscarded, 0, []Record{{1, 1, "dead", "a/1"}}
				}
				at := Event{Process: "a", Key: r.Key, ID: r.ID, Fence: 1, Attempt: 1}
				start, end := at, at
				start.What, start.At = Started, ran.from
				end.What, end.At, end.Outcome = Ended, ran.to, outcome
				history = append(history, start, end)
			}
			table = append(table, r)
		}
		v := Checker{MaxAttempts: 6}.Check(history, table)
		if v.Early != c.early || v.Lost-strayed(table) != c.lost {
			t.Errorf("%s: %d early and %d lost, want %d and %d: %q", name, v.Early, v.Lost, c.early, c.lost, v.Findings)
		}
		// The times of the database alone show it, too: a handler may have been killed
		// before it wrote that it started.
		for i := range table {
			for _, e := range history {
				if e.Key == table[i].Key {
					at := time.Unix(e.At, 0)
					if e.What == Started {
						table[i].FirstAttemptedAt = at
					} else {
						table[i].EndedAt = at
					}
				}
			}
		}
		if v := (Checker{MaxAttempts: 6}).Check(nil, table); v.Early != c.early {
			t.Errorf("%s: by the database's times %d are early, want %d: %q", name, v.Early, c.early, v.Findings)
		}
	}
}

// strayed counts the rows without a flow that are not finished, which are lost by themselves.
func strayed(table []Row) (n int) {
	for _, r := range table {
		if len(r.After) == 0 && r.State != "done" && r.State != "dead" {
			n++
		}
	}
	return n
}
