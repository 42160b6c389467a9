package faults

import (
	"fmt"
	"strings"
	"testing"
)

// TestCheckerWatchesChanges: a job of a group that ended in a state that no change explains is
// found, and so is one that did not run again after a retry.
func TestCheckerWatchesChanges(t *testing.T) {
	t.Parallel()
	const (
		free, parked = 2, 3 // numbers of jobs
		unsure       = "unsure "
		gone         = ""
	)
	for name, c := range map[string]struct {
		job     int
		changes []string
		state   string
		fence   int64
		died    int64 // the claim after which it was dead before the last change, or 0
		lost    int
	}{
		"not changed":                               {free, nil, "done", 1, 0, 0},
		"not changed, and gone":                     {free, nil, gone, 0, 0, 1},
		"not changed, and cancelled":                {free, nil, "cancelled", 0, 0, 1},
		"not changed, and waits for ever":           {free, nil, "open", 0, 0, 1},
		"cancelled":                                 {free, []string{"cancel"}, "cancelled", 0, 0, 0},
		"done before it could be cancelled":         {free, []string{"cancel"}, "done", 1, 0, 0},
		"gone by a cancel":                          {free, []string{"cancel"}, gone, 0, 0, 1},
		"parked, and deleted at the end":            {parked, nil, gone, 0, 0, 0},
		"parked, and done":                          {parked, nil, "done", 1, 0, 1},
		"parked, cancelled, and gone":               {parked, []string{"cancel"}, gone, 0, 0, 1},
		"parked, perhaps cancelled, and gone":       {parked, []string{unsure + "cancel"}, gone, 0, 0, 0},
		"parked, cancelled, retried and done":       {parked, []string{"cancel", "retry-cancelled"}, "done", 1, 0, 0},
		"parked, cancelled, and not retried":        {parked, []string{"cancel", "retry-cancelled"}, "cancelled", 0, 0, 1},
		"parked, perhaps retried":                   {parked, []string{"cancel", unsure + "retry-cancelled"}, "cancelled", 0, 0, 0},
		"cancelled, and retried as if dead":         {parked, []string{"cancel", "retry-dead"}, "done", 1, 0, 1},
		"retried, and cancelled":                    {free, []string{"retry-dead", "cancel"}, "cancelled", 1, 0, 0},
		"deleted":                                   {free, []string{"delete"}, gone, 0, 0, 0},
		"deleted, and there":                        {free, []string{"delete"}, "done", 1, 0, 1},
		"perhaps deleted, and there":                {free, []string{unsure + "delete"}, "done", 1, 0, 0},
		"dead, retried, and run again":              {free, []string{"cancel", "retry-dead"}, "dead", 2, 1, 0},
		"dead, retried, and not run again":          {free, []string{"cancel", "retry-dead"}, "dead", 1, 1, 1},
		"dead, perhaps retried, and not run again":  {free, []string{unsure + "retry-dead"}, "dead", 1, 1, 0},
		"dead, retried, and deleted before it runs": {free, []string{"retry-dead", "delete"}, gone, 0, 0, 0},
	} {
		key := keyOf("e"+groupMark+"1", c.job)
		history := []Event{{What: Acknowledged, Process: "e", Key: key, ID: 7}}
		for i, what := range c.changes {
			what, guess := strings.CutPrefix(what, unsure)
			e := Event{What: Changing, Process: "e", Key: groupOf(key), ID: int64(i + 1), Outcome: what}
			if history = append(history, e); !guess {
				e.What = Changed
				history = append(history, e)
			}
		}
		if c.died > 0 {
			history = append(history, Event{What: WasDead, Process: "e", Key: key, ID: 7, Fence: c.died, Attempt: len(c.changes)})
		}
		var table []Row
		if c.state != gone {
			r := Row{ID: 7, Key: key, State: c.state, Attempts: int(min(c.fence, 1)), Fence: c.fence}
			for fence := int64(1); fence <= c.fence; fence++ {
				e := Event{Process: "w", Key: key, ID: 7, Fence: fence, Attempt: 1}
				start, end := e, e
				start.What, end.What, end.Outcome = Started, Ended, OutcomeDiscarded
				if c.state == "done" {
					end.Outcome, r.Result = OutcomeDone, fence
				} else {
					r.Records = append(r.Records, Record{fence, 1, "dead", "w/1"})
				}
				history = append(history, start, end)
			}
			table = append(table, r)
		}
		v := Checker{MaxAttempts: 6}.Check(history, table)
		if v.Lost != c.lost || v.Doubled+v.StaleSettles > 0 {
			t.Errorf("%s: %d lost, want %d: %q", name, v.Lost, c.lost, v.Findings)
		}
	}
	// A job that no change can have retried runs each attempt once.
	key := keyOf("e"+groupMark+"2", free)
	var history []Event
	for fence := range int64(2) {
		history = append(history, Event{What: Started, Process: fmt.Sprint("w", fence), Key: key, ID: 7, Fence: fence + 1, Attempt: 1})
	}
	if v := (Checker{MaxAttempts: 6}).Check(history, []Row{{ID: 7, Key: key, State: "dead", Attempts: 6, Fence: 3}}); v.Doubled != 1 {
		t.Errorf("an attempt that ran twice: %d doubled, want 1: %q", v.Doubled, v.Findings)
	}
}

// TestCheckerKnowsCancelsBeforeTheSettle: a job is cancelled after its handler has returned, and
// before its worker has settled it. Nothing is recorded of that run.
func TestCheckerKnowsCancelsBeforeTheSettle(t *testing.T) {
	t.Parallel()
	key := keyOf("e"+groupMark+"1", 2)
	history := []Event{
		{What: Acknowledged, Process: "e", Key: key, ID: 7},
		{What: Started, Process: "w", Key: key, ID: 7, Fence: 1, Attempt: 1},
		{What: Ended, Process: "w", Key: key, ID: 7, Fence: 1, Attempt: 1, Outcome: OutcomeDone},
		{What: Changing, Process: "e", Key: groupOf(key), ID: 1, Outcome: "cancel"},
		{What: Changed, Process: "e", Key: groupOf(key), ID: 1, Outcome: "cancel"},
	}
	row := Row{ID: 7, Key: key, State: "cancelled", Attempts: 1, Fence: 2}
	if v := (Checker{MaxAttempts: 6}).Check(history, []Row{row}); !v.OK() {
		t.Errorf("found %q", v.Findings)
	}
	if row.State = "open"; (Checker{MaxAttempts: 6}).Check(history, []Row{row}).StaleSettles != 1 {
		t.Error("the same of an open job is not found")
	}
}
