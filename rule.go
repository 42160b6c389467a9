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
	// own is the rule of which an override has made this one, and setFor the override's
	// subject. Of other rules they are nil and "".
	own    *rule
	setFor string
}

func newRule(p backoff.Policy) *rule { return &rule{policy: p, delay: store.NewDelay(p.Delay())} }

// base returns the rule without what an override has made of it.
func (r *rule) base() *rule {
	if r.own != nil {
		return r.own
	}
	return r
}

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
