package ops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

func ExampleAhead() {
	failed := time.Date(2026, time.December, 11, 14, 2, 0, 0, time.UTC)
	task := falldue.TaskInfo{State: falldue.StateOpen, Attempts: 1, FirstAttemptedAt: failed, UpdatedAt: failed, Now: failed.Add(time.Minute)}
	p, err := backoff.Parse("delay 10m * n; jitter 5m; attempts 4")
	if err != nil {
		fmt.Println(err)
		return
	}
	future, err := ops.Ahead(task, p, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, run := range future.Runs {
		fmt.Printf("attempt %d: %s to %s\n", run.Attempt, run.Earliest.Format("15:04"), run.Latest.Format("15:04"))
	}
	fmt.Println("then it is dead:", future.GivenUp)
	// Output:
	// attempt 2: 14:12 to 14:12
	// attempt 3: 14:32 to 14:37
	// attempt 4: 15:02 to 15:12
	// then it is dead: true
}

func TestAhead(t *testing.T) {
	t.Parallel()
	const s = time.Second
	now := time.Date(2026, time.December, 11, 14, 2, 0, 0, time.UTC)
	run := func(attempt int, earliest, latest time.Duration) ops.Run {
		return ops.Run{Attempt: attempt, Earliest: now.Add(earliest), Latest: now.Add(latest)}
	}
	for name, c := range map[string]struct {
		task   falldue.TaskInfo
		policy string
		want   ops.Future
	}{
		"a new task": {
			falldue.TaskInfo{State: falldue.StateOpen, UpdatedAt: now.Add(5 * s)}, "delay 10s; jitter 1s; attempts 2",
			ops.Future{Runs: []ops.Run{run(1, 5*s, 5*s), run(2, 15*s, 16*s)}, GivenUp: true},
		},
		"one that has been due for long": {
			falldue.TaskInfo{State: falldue.StateOpen, Attempts: 1, UpdatedAt: now.Add(-time.Hour), FirstAttemptedAt: now.Add(-time.Hour)}, "10s",
			ops.Future{Runs: []ops.Run{run(2, 0, 0), run(3, 10*s, 10*s), run(4, 20*s, 20*s)}},
		},
		"a snoozed one": {
			falldue.TaskInfo{State: falldue.StateSnoozed, Attempts: 1, UpdatedAt: now.Add(s)}, "delay 10s; attempts 2",
			ops.Future{Runs: []ops.Run{run(2, s, s)}, GivenUp: true},
		},
		"a running one fails now": {
			falldue.TaskInfo{State: falldue.StateOpen, Attempts: 1, ClaimedBy: "w", UpdatedAt: now.Add(60 * s)}, "delay 10s; jitter 5s; attempts 3",
			ops.Future{Runs: []ops.Run{run(2, 10*s, 15*s), run(3, 20*s, 30*s)}, GivenUp: true},
		},
		"one whose worker died": {
			falldue.TaskInfo{State: falldue.StateOpen, Attempts: 1, ClaimedBy: "w", UpdatedAt: now.Add(-s)}, "delay 10s; attempts 2",
			ops.Future{Runs: []ops.Run{run(2, 9*s, 9*s)}, GivenUp: true},
		},
		"its own limit": {
			falldue.TaskInfo{State: falldue.StateOpen, Attempts: 1, MaxAttempts: 2, UpdatedAt: now}, "delay 10s; attempts 9",
			ops.Future{Runs: []ops.Run{run(2, 10*s, 10*s)}, GivenUp: true},
		},
		"no attempt left": {
			falldue.TaskInfo{State: falldue.StateOpen, Attempts: 3, UpdatedAt: now}, "delay 10s; attempts 2",
			ops.Future{GivenUp: true},
		},
		"a limit of time, from the first attempt": {
			falldue.TaskInfo{State: falldue.StateOpen, Attempts: 1, UpdatedAt: now, FirstAttemptedAt: now.Add(-10 * s)}, "delay 10s; jitter 4s; elapsed 32s",
			ops.Future{Runs: []ops.Run{run(2, 10*s, 10*s), run(3, 20*s, 22*s)}, GivenUp: true},
		},
		"a dead one": {falldue.TaskInfo{State: falldue.StateDead, Attempts: 1}, "10s", ops.Future{}},
	} {
		c.task.Now = now
		got, err := ops.Ahead(c.task, parse(t, c.policy), 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAheadRefuses(t *testing.T) {
	t.Parallel()
	task := falldue.TaskInfo{State: falldue.StateOpen}
	if _, err := ops.Ahead(task, parse(t, "1s").WithMaxAttempts(-1), 1); err == nil || !strings.Contains(err.Error(), "-1") {
		t.Errorf("an invalid policy: error %v", err)
	}
	if _, err := ops.Ahead(task, parse(t, "1s"), 0); err == nil || err.Error() != "ops: 0 attempts: must be 1 to 1000000" {
		t.Errorf("no attempts: error %v", err)
	}
}
