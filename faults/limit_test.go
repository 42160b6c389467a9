package faults

import "testing"

// TestCheckerWatchesCounts: a run in which no count of limited jobs succeeded says nothing about
// their limits. Faults may make some fail.
func TestCheckerWatchesCounts(t *testing.T) {
	t.Parallel()
	counted, failed, exceeded := Event{What: Counted, Key: "e-1", Outcome: "3"}, Event{What: Uncounted, Key: "e-1"}, Event{What: Exceeded, Key: "e-1", Outcome: "4"}
	for name, c := range map[string]struct {
		history  []Event
		exceeded int
	}{
		"no limited job ran":      {nil, 0},
		"all were counted":        {[]Event{counted, counted}, 0},
		"faults prevented some":   {[]Event{failed, counted, failed}, 0},
		"none was counted":        {[]Event{failed, failed}, 1},
		"one ran beside too many": {[]Event{counted, exceeded}, 1},
	} {
		if v := (Checker{}).Check(c.history, nil); v.Exceeded != c.exceeded {
			t.Errorf("%s: %d exceeded, want %d: %q", name, v.Exceeded, c.exceeded, v.Findings)
		}
	}
}
