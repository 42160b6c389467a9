package faults

import "testing"

// TestCheckerWatchesRetriesOfFlows: a dead job that was retried and did not run again is found, and
// so is one that waited for it and runs too early, or not at all.
func TestCheckerWatchesRetriesOfFlows(t *testing.T) {
	t.Parallel()
	type waiter struct {
		state string
		began int64 // or 0
		does  onDeath
	}
	run := func(number int, fence, from, to int64, outcome string) []Event {
		at := Event{Process: "a", Key: keyOf("e", number), ID: int64(number), Fence: fence, Attempt: 1}
		start, end := at, at
		start.What, start.At = Started, from
		end.What, end.At, end.Outcome = Ended, to, outcome
		return []Event{start, end}
	}
	for name, c := range map[string]struct {
		runsAgain   bool // done by claim 2, from second 3 to 5
		waiter      waiter
		early, lost int
	}{
		"the waiter runs after the retry":            {true, waiter{"done", 6, waitsForRetry}, 0, 0},
		"the waiter runs before the retry":           {true, waiter{"done", 2, waitsForRetry}, 1, 0},
		"the waiter runs while the retried one does": {true, waiter{"done", 4, waitsForRetry}, 1, 0},
		"the waiter is forgotten":                    {true, waiter{"blocked", 0, waitsForRetry}, 0, 1},
		"the retry came too late":                    {true, waiter{"cancelled", 0, isCancelled}, 0, 0},
		"the retry came in time":                     {true, waiter{"done", 6, isCancelled}, 0, 0},
		"the waiter ran anyway":                      {true, waiter{"done", 2, runsAnyway}, 0, 0},
		"it does not run again":                      {false, waiter{"blocked", 0, waitsForRetry}, 0, 1},
	} {
		member := Row{ID: 1, Key: "e-1", State: "dead", Fence: 1, Attempts: 1, Records: []Record{{1, 1, "dead", "a/1"}}}
		history := append(run(1, 1, 1, 2, OutcomeDiscarded), Event{What: Retrying, Key: "e-1"}, Event{What: Retried, Key: "e-1", ID: 1, Fence: 1})
		if c.runsAgain {
			member.State, member.Fence, member.Result = "done", 2, 2
			history = append(history, run(1, 2, 3, 5, OutcomeDone)...)
		}
		after := Row{ID: 2, Key: "e-2", State: c.waiter.state, After: []string{"e-1"}, OnDeath: c.waiter.does}
		if c.waiter.began > 0 {
			after.Fence, after.Attempts, after.Result = 1, 1, 1
			history = append(history, run(2, 1, c.waiter.began, c.waiter.began+1, OutcomeDone)...)
		}
		v := Checker{MaxAttempts: 6}.Check(history, []Row{member, after})
		if v.Early != c.early || v.Lost != c.lost || v.Doubled+v.StaleSettles+v.Exceeded > 0 {
			t.Errorf("%s: %d early and %d lost, want %d and %d: %q", name, v.Early, v.Lost, c.early, c.lost, v.Findings)
		}
	}
}
