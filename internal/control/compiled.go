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

// LimitSetFor returns the subject of the override that sets another limit on attempts than the code, or
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

// StartWithin returns how long after their anchors the tasks of a lane may begin their first attempt.
// It is 0 if the tasks do not expire: there is no limit, or they have run.
func (r *CompiledPolicy) StartWithin(at store.Lane) time.Duration {
	if !at.New() {
		return 0
	}
	return r.Policy.StartWithin()
}

// delayChecker compares delays with the database's.
type delayChecker interface {
	CheckDelays(context.Context, []sqlgen.Formula) error
}

// MaxChecked is the greatest number of policies that one statement checks.
const MaxChecked = 50

// check compares the delays of policies with the database's, and returns each policy, or why it cannot be
// applied. If a statement for several policies fails, a statement for each finds the policy that is to
// blame. If the database did not answer in time, late is the error, and the other policies are not checked.
func check(ctx context.Context, table delayChecker, list []*CompiledPolicy) (checked []CachedPolicy, late error) {
	checked = make([]CachedPolicy, len(list))
	var valid []int
	for i, p := range list {
		if err := p.Policy.Err(); err != nil {
			checked[i] = refused(err)
		} else {
			valid = append(valid, i)
		}
	}
	try := func(part []int) error {
		err := late
		if late == nil {
			err, late = checkDelays(ctx, table, list, part)
		}
		for _, i := range part {
			if checked[i] = (CachedPolicy{Policy: list[i]}); err != nil {
				checked[i] = refused(err)
			}
		}
		return err
	}
	for part := range slices.Chunk(valid, MaxChecked) {
		if try(part) != nil && late == nil && len(part) > 1 {
			for k := range part {
				_ = try(part[k : k+1]) // checked has the error
			}
		}
	}
	return checked, late
}

// checkDelays compares the delays of some policies of a list with the database's. The error is late, too, if
// the database did not answer in time.
func checkDelays(ctx context.Context, table delayChecker, list []*CompiledPolicy, part []int) (err, late error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	formulas := make([]sqlgen.Formula, len(part))
	for k, i := range part {
		formulas[k] = list[i].Policy.Delay()
	}
	err = table.CheckDelays(ctx, formulas)
	if ctx.Err() != nil {
		late = err
	}
	return err, late
}
