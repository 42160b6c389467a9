package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTasksOfAPickupComeFiftyToAHundredMillisecondsApart has an enqueue that takes 10 ms,
// and a worker that is slower than the tasks come.
func TestTasksOfAPickupComeFiftyToAHundredMillisecondsApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes, delay = 10 * time.Millisecond, 700 * time.Millisecond
		started := make(chan time.Time, 1000)
		var begun []time.Time
		insert := func(context.Context) error {
			begun = append(begun, time.Now())
			time.Sleep(takes)
			time.AfterFunc(delay, func() { started <- time.Now() })
			return nil
		}
		list, err := measureWaits(t.Context(), &config{while: 5 * time.Second, patience: time.Minute}, insert, started)
		if err != nil {
			t.Fatal(err)
		}
		shortest, longest := time.Hour, time.Duration(0)
		for i := 1; i < len(begun); i++ {
			gap := begun[i].Sub(begun[i-1])
			shortest, longest = min(shortest, gap), max(longest, gap)
		}
		if shortest < 50*time.Millisecond || shortest > 60*time.Millisecond || longest < 90*time.Millisecond || longest > 100*time.Millisecond {
			t.Errorf("tasks come %v to %v apart, want 50 ms to 100 ms", shortest, longest)
		}
		if len(list) != len(begun)-warmUp || list[0] != delay || list[len(list)-1] != delay {
			t.Errorf("%d tasks of %d waited %v to %v, want %v", len(list), len(begun), list[0], list[len(list)-1], delay)
		}
	})
}
