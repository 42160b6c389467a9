package tasktest

import (
	"fmt"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// AssertWait fails the test unless the wait after a failed attempt is between min and max for every jitter. The first
// attempt is 1.
func AssertWait(t testing.TB, p backoff.Policy, attempt int, min, max time.Duration) {
	t.Helper()
	if !valid(t, p, min, max) {
		return
	}
	if attempt < 1 {
		t.Errorf("tasktest: attempt %d: must be 1 or more", attempt)
		return
	}
	if most := p.MaxAttempts(); most > 0 && attempt >= most {
		t.Errorf("tasktest: no task waits after attempt %d under the policy %q, which allows %d attempts", attempt, p, most)
		return
	}
	delay, jitter := p.Wait(int64(attempt))
	if delay < min || delay+jitter > max {
		t.Errorf("tasktest: after attempt %d a task waits %s under the policy %q, want %s", attempt, span(delay, delay+jitter), p, span(min, max))
	}
}

// AssertTotal checks how long a policy keeps trying a task that always fails. It fails the
// test unless the time from the first failure to the start of the last attempt is between min
// and max, for every possible jitter. The time in handlers does not count. A policy without
// a limit fails the test.
func AssertTotal(t testing.TB, p backoff.Policy, min, max time.Duration) {
	t.Helper()
	if !valid(t, p, min, max) {
		return
	}
	s, err := ops.Preview(p, maxRetries)
	switch {
	case err != nil:
		t.Errorf("tasktest: %v", err)
	case s.Fewest == 0:
		t.Errorf("tasktest: a task is retried more than %d times under the policy %q, want an end after %s", maxRetries, p, span(min, max))
	case s.Earliest < min || s.Latest > max:
		t.Errorf("tasktest: the last attempt of a task comes %s after the first under the policy %q, want %s", span(s.Earliest, s.Latest), p, span(min, max))
	}
}

// maxRetries is how many retries AssertTotal looks at.
const maxRetries = 100_000

// span formats the shortest and the longest of durations.
func span(min, max time.Duration) string {
	if min == max {
		return min.String()
	}
	return fmt.Sprintf("%v to %v", min, max)
}

func valid(t testing.TB, p backoff.Policy, min, max time.Duration) bool {
	t.Helper()
	if err := p.Err(); err != nil {
		t.Errorf("tasktest: the policy is invalid: %v", err)
		return false
	}
	if min > max {
		t.Errorf("tasktest: min %v: must be at most max %v", min, max)
		return false
	}
	return true
}
