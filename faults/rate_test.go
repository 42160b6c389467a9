package faults

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// TestCheckerWatchesRates: tasks that start although the rate of their kind or of their key is
// used up are found, also those of claims that only their handlers have seen.
func TestCheckerWatchesRates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starts   []int // milliseconds, of the keys in turn unless oneKey is set
		oneKey   bool
		exceeded int
	}{
		"as many as may, and the next after the window":  {[]int{0, 0, 50, 50, 100, 250}, false, 0},
		"one more within the window":                     {[]int{0, 0, 50, 50, 100, 249}, false, 1},
		"the window begins with any start":               {[]int{0, 190, 200, 250, 300, 350, 430}, false, 1},
		"a burst after a pause":                          {[]int{0, 0, 50, 100, 300, 300}, true, 0},
		"more than a burst":                              {[]int{0, 0, 0}, true, 1},
		"the average of a key, too early by millisecond": {[]int{0, 0, 49}, true, 1},
	} {
		var history []Event
		var table []Row
		for i, ms := range c.starts {
			at := time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond)
			r := Row{ID: int64(i), Key: keyOf("e", i), State: "done", Rated: strconv.Itoa(i % 2), Fence: 1, AttemptedAt: at}
			if c.oneKey {
				r.Rated = "0"
			}
			if i%3 == 2 { // another claim came much later
				history = append(history, Event{What: Claimed, Key: r.Key, ID: r.ID, Fence: 1, Outcome: fmt.Sprint(at.UnixMicro())})
				r.Fence, r.AttemptedAt = 2, at.Add(time.Duration(i+1)*time.Hour)
			}
			table = append(table, r)
		}
		v := Checker{MaxAttempts: 6}.Check(history, table)
		if v.Exceeded != c.exceeded {
			t.Errorf("%s: %d exceeded, want %d: %q", name, v.Exceeded, c.exceeded, v.Findings)
		}
	}
}
