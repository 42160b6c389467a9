package ops

import (
	"fmt"
	"math"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/sqlgen"
)

// Schedule describes the retries of a task that always fails, and the time when the task is given up. Handlers are
// assumed to take no time. All times count from the first failure.
type Schedule struct {
	// Retries are the retries in their order.
	Retries []Retry
	// Fewest and Most are the smallest and the largest number of attempts that the task can have before it is given up.
	// They differ if the policy limits the elapsed time and has a jitter. Both are 0 if the task is not given up after the
	// last of Retries.
	Fewest, Most int
	// Earliest and Latest are the earliest and the latest time of the attempt after which the task is given up.
	Earliest, Latest time.Duration
	// DelayLimit is the limit that Delay approaches with more and more failures, such as 24 hours for arctan(max=24h).
	// WaitLimit is the limit of Delay + Jitter. Both are 0 if the wait grows without a limit.
	DelayLimit, WaitLimit time.Duration
}

// Retry is one retry of a task.
type Retry struct {
	// N is the number of attempts that have failed before.
	N int
	// Delay is the shortest wait before the retry. The wait is drawn from Delay to
	// Delay + Jitter.
	Delay, Jitter time.Duration
	// The retry is due between Earliest and Latest.
	Earliest, Latest time.Duration
}

// maxRetries is the greatest number of retries of a Schedule.
const maxRetries = 1_000_000

// Preview returns the schedule of a policy, up to the number of retries. It returns an error if
// the policy is invalid, or if the number is not 1 to 1,000,000.
func Preview(p backoff.Policy, retries int) (Schedule, error) {
	if err := p.Err(); err != nil {
		return Schedule{}, err
	}
	if retries < 1 || retries > maxRetries {
		return Schedule{}, fmt.Errorf("ops: %d retries: must be 1 to %d", retries, maxRetries)
	}
	var s Schedule
	s.DelayLimit, s.WaitLimit = limits(p)
	var earliest, latest time.Duration // of the attempt that fails
	for n := 1; ; n++ {
		delay, jitter := p.Wait(int64(n))
		longest := sum(delay, jitter)
		if isLast := ends(p, n, sum(latest, longest)); isLast && s.Fewest == 0 {
			// The waits before were the longest, or this is the limit on attempts.
			s.Fewest, s.Latest = n, latest
			if limit := p.MaxElapsed(); limit > 0 {
				s.Latest = limit
			}
			s.Earliest = earliest
		}
		if ends(p, n, sum(earliest, delay)) {
			s.Most = n
			s.Latest = min(s.Latest, latest)
			return s, nil
		}
		if n > retries {
			s.Fewest, s.Earliest, s.Latest = 0, 0, 0
			return s, nil
		}
		earliest, latest = sum(earliest, delay), sum(latest, longest)
		if limit := p.MaxElapsed(); limit > 0 {
			latest = min(latest, limit)
		}
		s.Retries = append(s.Retries, Retry{N: n, Delay: delay, Jitter: jitter, Earliest: earliest, Latest: latest})
	}
}

// limits returns the limits of delays and of the longest waits. Delays stay as they are from
// math.MaxInt32 failures on. A wait that still grows between a million failures and that has no
// limit.
func limits(p backoff.Policy) (delay, wait time.Duration) {
	earlyDelay, earlyJitter := p.Wait(1_000_000)
	delay, jitter := p.Wait(math.MaxInt32)
	limit := func(early, late time.Duration) time.Duration {
		if late >= sqlgen.MaxDelay*time.Second || max(early-late, late-early) > late/1000 {
			return 0
		}
		return late
	}
	return limit(earlyDelay, delay), limit(sum(earlyDelay, earlyJitter), sum(delay, jitter))
}

// ends reports whether a policy gives a task up after n failures, if its next attempt
// would begin at next.
func ends(p backoff.Policy, n int, next time.Duration) bool {
	return p.MaxAttempts() > 0 && n >= p.MaxAttempts() || p.MaxElapsed() > 0 && next > p.MaxElapsed()
}

// sum adds durations that are not negative. It returns the longest duration, 292 years,
// instead of a longer one.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
