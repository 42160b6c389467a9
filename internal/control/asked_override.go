package control

import (
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/retry"
)

// scheduledOverride is an override as the table of changes has it.
type scheduledOverride struct {
	Subject
	id         int64 // of the change
	includeOwn bool
	begin      time.Time // by the worker's monotonic clock, as until; a zero until is never
	until      time.Time
	steps      []Step
}

// readAgain returns the override with the times that another read of its change gives, and reports
// whether they have moved: the worker's clock stands still while its machine sleeps, and the
// database's may be set. A read makes them late by what it takes, so that of several reads the one
// that makes them earliest is right.
func (a scheduledOverride) readAgain(c knownChange) (same scheduledOverride, moved bool) {
	by := c.made().Sub(a.begin)
	if by >= 0 && by <= retry.StatementTimeout {
		return a, false
	}
	a.begin = a.begin.Add(by)
	if !a.until.IsZero() {
		a.until = a.until.Add(by)
	}
	return a, true
}

// step returns the step that holds at now, and when another one does. It is nil after the
// end.
func (a scheduledOverride) step(now time.Time) (policy *backoff.Override, next time.Time) {
	if !a.until.IsZero() && !now.Before(a.until) {
		return nil, time.Time{}
	}
	for i, step := range a.steps {
		if at := a.begin.Add(step.After); i > 0 && now.Before(at) {
			return policy, soonest(at, a.until)
		}
		policy = &a.steps[i].Formula
	}
	return policy, a.until
}

// soonest returns the first of two times, of which those that are zero never come.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
