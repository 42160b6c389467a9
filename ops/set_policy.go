package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// SetPolicy changes the policies of a subject's tasks on all workers, until ClearPolicy or OverrideOptions.Until.
// Workers apply the change within two seconds: to waiting tasks immediately, and to running tasks when they fail. No
// row of a task is written. The override is stored in the database, so workers that start later apply it, too. In the
// override's formula, original stands for the formula of the current code, even after a deploy.
//
// A second SetPolicy of the same subject replaces the first override: the newest override, by the database's clock, is
// in effect, and the history keeps both. If several subjects select a task, the override of the most specific subject
// is in effect. A subject with a key is the most specific, then a subject with a policy, then one with a kind.
//
// SetPolicy checks the override: it applies the override to the policies of the kinds that the queue or a live worker
// handles, or else to the default policy. If the server then computes other delays than Go for sample attempts,
// SetPolicy returns an error. Each worker makes the same check with its own policies. A worker that cannot apply the
// override keeps its current policy, and logs an error. SetPolicy does not read the waiting tasks: [Profile.Impact]
// computes the effect on them.
//
// The jitter is chosen when a task fails, and stays with the task after the override has ended. The limits of a
// policy, for example on attempts, apply at different times: docs/policy-changes.md lists them.
//
// Pass options at most once. The error wraps [falldue.ErrInvalid] for an invalid subject, override or
// option.
func (o *Ops) SetPolicy(ctx context.Context, s falldue.Subject, formula backoff.Override, list ...OverrideOptions) error {
	opts, err := oneOf(list)
	if err != nil {
		return err
	}
	steps := append([]OverrideStep{{Formula: formula}}, opts.Steps...)
	value, err := storeOverride(steps, opts.IncludeOwn)
	if err != nil {
		return err
	}
	if err := control.Subject(s).Check(); err != nil {
		return invalid("%w", err)
	}
	if err := o.checkOverride(ctx, s, steps); err != nil {
		return err
	}
	return o.inside.Change(ctx, s, opts.Until, store.Change{What: statements.ChangePolicy, Value: value, Who: opts.Who, Why: opts.Why})
}

// ClearPolicy ends the override of a subject. Within two seconds, the subject's tasks return to the policies set in the
// code, or to their per-task policies. For a subject without an override, ClearPolicy returns nil. Pass a note at most
// once. Errors are as for [Ops.SetPolicy].
func (o *Ops) ClearPolicy(ctx context.Context, s falldue.Subject, notes ...falldue.Note) error {
	n, err := oneOf(notes)
	if err != nil {
		return err
	}
	return o.inside.Change(ctx, s, time.Time{}, store.Change{What: statements.ChangeClearPolicy, Who: n.Who, Why: n.Why})
}

// Overrides lists the overrides of policies that are in effect now. The override of a task is the first
// override in the list for which [Override.Names] returns true. The Key of a subject is in the form of
// [falldue.TaskInfo].Key. Like workers, Overrides ignores an override that this release cannot read.
func (o *Ops) Overrides(ctx context.Context) ([]Override, error) {
	changes, err := o.store.Changes(ctx, store.AllChanges)
	return overridesIn(changes), err
}

// overridesIn returns the overrides that are in effect after changes, which are sorted, the
// oldest first.
func overridesIn(changes []store.StoredChange) []Override {
	list := []Override{}
	changes = policyChanges(changes)
	newest := map[string]int64{}
	for _, c := range changes {
		newest[c.Subject] = c.ID
	}
	for _, c := range changes {
		if newest[c.Subject] != c.ID || c.Ends > 0 && c.Ends <= c.Now {
			continue
		}
		if set, ok := readOverride(c); ok && !set.Cleared {
			list = append(list, set)
		}
	}
	slices.SortStableFunc(list, func(a, b Override) int { return compareSubjects(a.Subject, b.Subject) })
	return list
}

// OverrideHistory lists the overrides that were set or cleared in the last 90 days, the oldest first. It
// includes the newest override of each subject, however old.
func (o *Ops) OverrideHistory(ctx context.Context) ([]Override, error) {
	changes, err := o.store.Changes(ctx, store.AllChanges)
	return overrideHistory(changes), err
}

// overrideHistory returns the overrides that changes, oldest first, have set and cleared. An override that has ended
// has only the steps that were taken before its end.
func overrideHistory(changes []store.StoredChange) []Override {
	list, ended := []Override{}, map[string]int64{}
	for _, c := range slices.Backward(policyChanges(changes)) {
		for _, end := range []int64{c.Ends, ended[c.Subject]} {
			if end > 0 {
				c.Now = min(c.Now, end-1)
			}
		}
		ended[c.Subject] = c.Created
		if o, ok := readOverride(c); ok {
			list = append(list, o)
		}
	}
	slices.Reverse(list)
	return list
}

// policyChanges returns the changes of policies among changes.
func policyChanges(changes []store.StoredChange) (list []store.StoredChange) {
	for _, c := range changes {
		if c.What == statements.ChangePolicy || c.What == statements.ChangeClearPolicy {
			list = append(list, c)
		}
	}
	return list
}

// checkOverride checks the policies that an override makes of others: of the policies of kinds that the queue or a live
// worker handles, of the subject's policy, or else of the default policy.
func (o *Ops) checkOverride(ctx context.Context, s falldue.Subject, steps []OverrideStep) error {
	known, err := o.Policies(ctx, s.Policy)
	if err != nil {
		return err
	}
	policies := map[string]backoff.Policy{}
	if s.Policy != "" {
		if err := known.Unreadable[s.Policy]; err != nil {
			return invalid("%w; falldue ls --json prints the keys of per-task policies", err)
		}
		policies["policy "+s.Policy] = known.own[s.Policy]
	} else {
		for _, kind := range slices.Concat(slices.Collect(maps.Keys(known.kinds)), slices.Collect(maps.Keys(known.announced))) {
			if policy, ok := known.Code(falldue.TaskInfo{Kind: kind}); ok && kind != "" && (s.Kind == "" || s.Kind == kind) {
				policies["kind "+kind] = policy
			}
		}
	}
	if len(policies) == 0 {
		policies["the default policy"] = backoff.Policy{}
	}
	var formulas []sqlgen.Formula
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		for _, step := range steps {
			made := step.Formula.Of(policies[name])
			if err := made.Err(); err != nil {
				return fmt.Errorf("%w: %s under the override %q: %w", falldue.ErrInvalid, name, step.Formula, err)
			}
			formulas = append(formulas, made.Delay())
		}
	}
	for part := range slices.Chunk(formulas, maxCheckedAtOnce) {
		if err := o.store.CheckDelays(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
