package control

import (
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// CompiledPolicy is the policy of a lane or a task, with its delay as claims need it.
type CompiledPolicy struct {
	Policy backoff.Policy
	Delay  *store.Delay
	// original is the rule of which an override has made this one, and setFor the override's
	// subject. Of other rules they are nil and "".
	original *CompiledPolicy
	SetFor   string
}

// Compile returns a policy as claims need it.
func Compile(p backoff.Policy) *CompiledPolicy {
	return &CompiledPolicy{Policy: p, Delay: store.NewDelay(p.Delay())}
}

// base returns the rule without what an override has made of it.
func (r *CompiledPolicy) base() *CompiledPolicy {
	if r.original != nil {
		return r.original
	}
	return r
}

// DelayAfter returns the delay after a number of attempts.
func (r *CompiledPolicy) DelayAfter(attempts int) time.Duration {
	return store.Duration(r.Delay.Formula.Micros(int64(attempts)))
}

// DelayIn returns the delay of the tasks of a lane.
func (r *CompiledPolicy) DelayIn(at store.Lane) time.Duration {
	if at.State == statements.StateSnoozed {
		return 0
	}
	return r.DelayAfter(at.Attempts)
}
