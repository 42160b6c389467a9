package faults

import "testing"

// TestCheckerWatchesSequences: a job that runs before the last run of one that was
// enqueued before it has ended is found, and what may happen is not.
func TestCheckerWatchesSequences(t *testing.T) {
	t.Parallel()
	type event struct {
		number int
		what   string
		fence  int64
	}
	const started, ended, acknowledged = Started, Ended, Acknowledged
	for name, c := range map[string]struct {
		events []event
		early  int
	}{
		"one after the other":                    {[]event{{9, acknowledged, 0}, {27, acknowledged, 0}, {9, started, 1}, {9, ended, 1}, {27, started, 1}, {27, ended, 1}}, 0},
		"overtaken":                              {[]event{{9, acknowledged, 0}, {27, acknowledged, 0}, {27, started, 1}, {27, ended, 1}, {9, started, 1}, {9, ended, 1}}, 1},
		"beside each other":                      {[]event{{9, acknowledged, 0}, {27, acknowledged, 0}, {9, started, 1}, {27, started, 1}, {27, ended, 1}, {9, ended, 1}}, 1},
		"not acknowledged":                       {[]event{{27, acknowledged, 0}, {27, started, 1}, {27, ended, 1}, {9, started, 1}, {9, ended, 1}}, 0},
		"a handler without its lease runs on":    {[]event{{9, acknowledged, 0}, {9, started, 1}, {9, started, 2}, {9, ended, 2}, {27, started, 1}, {9, ended, 1}, {27, ended, 1}}, 0},
		"a retry of the first, after the second": {[]event{{9, acknowledged, 0}, {9, started, 1}, {9, ended, 1}, {27, started, 1}, {27, ended, 1}, {9, started, 2}, {9, ended, 2}}, 1},
	} {
		var history []Event
		rows := map[int]Row{}
		for at, e := range c.events {
			key := map[int]string{9: "e-9", 27: "e-27"}[e.number]
			history = append(history, Event{At: int64(at + 1), What: e.what, Process: "a", Key: key, ID: int64(e.number), Fence: e.fence, Attempt: int(e.fence), Outcome: OutcomeDone})
			rows[e.number] = Row{ID: int64(e.number), Key: key, State: "done", Sequence: "e/1", Fence: max(e.fence, rows[e.number].Fence)}
		}
		v := Checker{MaxAttempts: 6}.Check(history, []Row{rows[9], rows[27]})
		if v.Early != c.early {
			t.Errorf("%s: %d early, want %d: %v", name, v.Early, c.early, v.Findings)
		}
	}
}
