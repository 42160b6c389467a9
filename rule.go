package falldue

import (
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// rule is the policy of a lane or a task, with its delay as claims need it.
type rule struct {
	policy backoff.Policy
	delay  *store.Delay
}

func newRule(p backoff.Policy) *rule { return &rule{p, store.NewDelay(p.Delay())} }

// delayAfter returns the delay after a number of attempts.
func (r *rule) delayAfter(attempts int) time.Duration {
	return store.Duration(r.delay.Formula.Micros(int64(attempts)))
}

// delayIn returns the delay of the tasks of a lane.
func (r *rule) delayIn(at store.Lane) time.Duration {
	if at.State == statements.StateSnoozed {
		return 0
	}
	return r.delayAfter(at.Attempts)
}
