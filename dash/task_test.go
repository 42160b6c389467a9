package dash

import (
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// TestBounds: a task's timeout, or else its kind's, counts from the start of its run, its expiry from its due time or at its own time, and the end of its
// retries from its first attempt.
func TestBounds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	policy := backoff.ParseDeferred("delay 1m").WithStartWithin(time.Hour).WithMaxElapsed(2 * time.Hour)
	fresh := falldue.TaskInfo{State: falldue.StateOpen, UpdatedAt: now.Add(-time.Minute), Now: now, Timeout: time.Minute}
	dated, later := fresh, fresh
	dated.ExpireAt, later.ExpireAt = now.Add(30*time.Minute), now.Add(2*time.Hour)
	run := later
	run.Attempts, run.ClaimedBy, run.UpdatedAt, run.AttemptedAt, run.FirstAttemptedAt = 1, "w", now.Add(30*time.Second), now.Add(-time.Second), now.Add(-time.Second)
	kinds := run
	kinds.Timeout = 0
	dead := run
	dead.State = falldue.StateDead
	for _, c := range []struct {
		name    string
		task    falldue.TaskInfo
		timeout time.Duration // of the kind
		want    map[string]time.Duration
	}{
		{"new", fresh, time.Second, map[string]time.Duration{"Timeout": 0, "Expires": 59 * time.Minute}},
		{"that expires by its own time", dated, 0, map[string]time.Duration{"Timeout": 0, "Expires": 30 * time.Minute}},
		{"that expires under its policy before", later, 0, map[string]time.Duration{"Timeout": 0, "Expires": 59 * time.Minute}},
		{"running", run, 0, map[string]time.Duration{"Timeout": 59 * time.Second, "Lease ends": 30 * time.Second, "No retry after": 2*time.Hour - time.Second}},
		{"dead", dead, 0, map[string]time.Duration{"Timeout": 0}},
		{"with the timeout of its kind", kinds, 20 * time.Second, map[string]time.Duration{"Timeout": 19 * time.Second, "Lease ends": 30 * time.Second, "No retry after": 2*time.Hour - time.Second}},
	} {
		list := boundsOf(c.task, c.timeout, policy, true)
		for _, b := range list {
			in := time.Duration(0)
			if !b.At.IsZero() {
				in = b.At.Sub(now)
			}
			if want, ok := c.want[b.Name]; !ok || in != want {
				t.Errorf("%s: %+v", c.name, b)
			}
		}
		if len(list) != len(c.want) {
			t.Errorf("%s: %+v", c.name, list)
		}
	}
}
