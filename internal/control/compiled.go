package control

import (
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// CompiledPolicy is the policy of a lane or a task, with its delay as claims need it.
type CompiledPolicy struct {
	Policy backoff.Policy
	Delay  *store.Delay
	// original is the policy that an override has replaced by this one, and SetFor the override's
	// subject. Without an override they are nil and "".
	original *CompiledPolicy
	SetFor   string
}

// Compile returns a policy as claims need it.
func Compile(p backoff.Policy) *CompiledPolicy {
	return &CompiledPolicy{Policy: p, Delay: store.NewDelay(p.Delay())}
}

// base returns the policy without an override.
func (r *CompiledPolicy) base() *CompiledPolicy {
	if r.original != nil {
		return r.original
	}
	return r
}

// LimitSetFor returns the subject of the override that sets another limit of attempts than the code, or
// "" if the limit is the code's.
func (r *CompiledPolicy) LimitSetFor() string {
	if r.original == nil || r.original.Policy.MaxAttempts() != r.Policy.MaxAttempts() {
		return r.SetFor
	}
	return ""
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

// delayChecker compares delays with the database's.
type delayChecker interface {
	CheckDelays(context.Context, []sqlgen.Formula) error
}

// MaxChecked is the greatest number of policies that one statement checks.
const MaxChecked = 50

// checkDelays compares the delays of policies with the database's, and returns for each policy why it
// cannot be applied, or nil. If a statement for several policies fails, a statement for each finds the
// policy that is to blame, unless the database did not answer in time. Then late is the error, and the other
// policies are not checked.
func checkDelays(ctx context.Context, table delayChecker, list []*CompiledPolicy) (errs []error, late error) {
	errs = make([]error, len(list))
	var valid []int
	for i, p := range list {
		if errs[i] = p.Policy.Err(); errs[i] == nil {
			valid = append(valid, i)
		}
	}
	check := func(part []int) error {
		ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
		defer cancel()
		formulas := make([]sqlgen.Formula, len(part))
		for k, i := range part {
			formulas[k] = list[i].Policy.Delay()
		}
		err := table.CheckDelays(ctx, formulas)
		for _, i := range part {
			errs[i] = err
		}
		if ctx.Err() != nil {
			late = err
		}
		return err
	}
	for part := range slices.Chunk(valid, MaxChecked) {
		if late != nil {
			for _, i := range part {
				errs[i] = late
			}
			continue
		}
		if check(part) == nil || len(part) == 1 {
			continue
		}
		for k := 0; k < len(part) && late == nil; k++ {
			_ = check(part[k : k+1]) // errs has the error
		}
	}
	return errs, late
}
