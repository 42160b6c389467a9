package ops

import (
	"math"
	"time"
)

// Spread sets when tasks that are retried together fall due. With the zero value, all tasks are due immediately. Unless
// Over is set, tasks fall due in the order of their IDs, so that tasks of a key with [falldue.InOrder] run in that
// order again. Over does not keep the order.
type Spread struct {
	// Rate is the maximum number of tasks that fall due per second, up to 1,000,000. No task
	// falls due later than 36,500 days from now.
	Rate float64
	// Over spreads the tasks evenly over this time, up to 36,500 days. The tasks fall due in no
	// particular order, since their number is not known in advance. For tasks with
	// [falldue.InOrder] use Rate, which keeps their order. Rate and Over cannot both be set.
	Over time.Duration
	// From is when the first task falls due, by the database's clock. It must not be before 1970,
	// nor more than 36,500 days in the future. Defaults to now.
	From time.Time
}

func (s Spread) validate() error {
	switch {
	case s.Rate < 0 || s.Rate > 1e6 || math.IsNaN(s.Rate):
		return invalid("Rate %v: must be from 0 to 1,000,000 tasks per second", s.Rate)
	case s.Over < 0 || s.Over > maxDelay:
		return invalid("Over %v: must be 0 to %s", s.Over, longestDelay)
	case s.Rate > 0 && s.Over > 0:
		return invalid("both Rate %v and Over %v are set: set only one", s.Rate, s.Over)
	}
	if !s.From.IsZero() && (s.From.UTC().Year() < 1970 || time.Until(s.From) > maxDelay) {
		return invalid("From %v: must not be before 1970, nor more than %s in the future", s.From, longestDelay)
	}
	return nil
}

// spreader computes when the tasks of a spread fall due, a batch after the other.
type spreader struct {
	gap   time.Duration        // between two tasks
	over  time.Duration        // or the time over which they are spread evenly
	since func() time.Duration // returns how long ago the spreader began
	next  time.Duration        // after it began, when the next task falls due
	n     int                  // tasks so far
}

// newSpreader returns a spreader that begins when the database's clock says now.
func newSpreader(s Spread, now time.Time) *spreader {
	began := time.Now()
	// A microsecond keeps tasks of a sequence in order.
	p := &spreader{gap: time.Microsecond, over: s.Over, since: func() time.Duration { return time.Since(began) }}
	if s.Rate > 0 {
		p.gap = max(time.Duration(math.Ceil(min(float64(time.Second)/s.Rate, float64(maxDelay)))), p.gap)
	}
	if !s.From.IsZero() {
		p.next = max(s.From.Sub(now), 0)
	}
	return p
}

// plan returns when the next n tasks fall due, as times after the statement that changes them.
// The caller calls taken when that statement has ended. The next batch then begins after the
// latest time at which the statement can have made its last task due. So no second has more
// tasks than its share, even if a statement takes long.
func (p *spreader) plan(n int) (waits []time.Duration, taken func()) {
	before := p.since()
	from := max(p.next-before, 0)
	waits = make([]time.Duration, n)
	for i := range waits {
		if p.over > 0 {
			waits[i] = from + p.place(p.n+i, p.over-max(before-p.next, 0))
		} else {
			waits[i] = p.after(from, i)
		}
	}
	return waits, func() {
		p.n += n
		if p.over == 0 {
			p.next = p.after(p.since()+from, n)
		}
	}
}

// after returns when the n-th task after one falls due that falls due at from. A low rate and
// many tasks could make more of it than a Duration holds, which would be in the past.
func (p *spreader) after(from time.Duration, n int) time.Duration {
	if time.Duration(n) > (maxDelay-from)/p.gap {
		return max(from, maxDelay)
	}
	return from + time.Duration(n)*p.gap
}

// place returns where the i-th of any number of tasks is within a time: the fractional
// parts of the multiples of the golden ratio are spread evenly, however many there are.
func (p *spreader) place(i int, within time.Duration) time.Duration {
	_, fraction := math.Modf(float64(i) * (math.Phi - 1))
	return time.Duration(fraction * float64(max(within, 0)))
}
