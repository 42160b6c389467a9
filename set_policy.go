package falldue

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// SetPolicy changes the policies of a subject's tasks on all workers, until ClearPolicy or
// the end that the options give. Workers obey within two seconds: tasks that wait at once,
// those that run when they fail. No row of a task is written. The override is stored in the
// database, and holds for workers that start later, and for the policies of a later deploy:
// what is own in it is always what the code has.
//
// A second SetPolicy of the same subject replaces the first: the newest holds, by the
// database's clock, and the history keeps both. Of several subjects that name a task, the
// most specific holds: one with a key, then one with a policy, then one with a kind.
//
// SetPolicy makes the policies of the kinds that the queue or a live worker handles, or else
// of the default policy, and refuses an override with which this server computes other
// delays than Go at sample attempts. Each worker does the same with the policies that it
// has. One that cannot obey keeps the old policy, and logs an error. SetPolicy does not look
// at the tasks that wait: [ops.Profile.Weigh] says what an override does to them.
//
// A jitter is drawn when a task fails, and stays with the task when the override is over.
// The limits decide when an attempt ends or is claimed: see docs/policies.md.
//
// The error wraps [ErrInvalid] for an invalid subject, override or option.
//
// [ops.Profile.Weigh]: https://pkg.go.dev/github.com/falldue/falldue/ops#Profile.Weigh
func (q *Queue) SetPolicy(ctx context.Context, s Subject, policy backoff.Override, o OverrideOptions) error {
	c := store.Change{What: statements.ChangePolicy, Who: o.Who, Why: o.Why}
	steps := append([]OverrideStep{{Override: policy}}, o.Steps...)
	value, err := storeOverride(steps, o.IncludeOwn)
	if err != nil {
		return err
	}
	c.Value = value
	if c.Ends, err = changeEnd(o.Until); err != nil {
		return err
	}
	if err := s.Err(); err != nil {
		return err
	}
	if err := q.checkOverride(ctx, s, steps); err != nil {
		return err
	}
	return q.change(ctx, s, c)
}

// ClearPolicy ends the override of a subject: its tasks have the policies of the code, or
// their own, again within two seconds. A subject without an override may be cleared. For the
// error see [Queue.SetPolicy].
func (q *Queue) ClearPolicy(ctx context.Context, s Subject, o ResumeOptions) error {
	return q.change(ctx, s, store.Change{What: statements.ChangeClearPolicy, Who: o.Who, Why: o.Why})
}

// Overrides lists the overrides of policies that hold now. The first of them that names a
// task, see [Override.Names], holds for it. The Key of a subject is the key as tasks have it
// in [TaskInfo]. An override that this release cannot read is left out, as workers do.
func (q *Queue) Overrides(ctx context.Context) ([]Override, error) {
	list := []Override{}
	newest := map[string]int64{}
	changes, err := q.policyChanges(ctx)
	for _, c := range changes {
		newest[c.Subject] = c.ID
	}
	for _, c := range changes {
		if newest[c.Subject] != c.ID || c.Ends > 0 && c.Ends <= c.Now {
			continue
		}
		if o, ok := readOverride(c); ok && !o.Cleared {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b Override) int { return control.Subject(a.Subject).Compare(control.Subject(b.Subject)) })
	return list, err
}

// OverrideHistory lists the overrides of policies that were set or cleared in the last 90
// days, and the newest of each subject, the oldest first.
func (q *Queue) OverrideHistory(ctx context.Context) ([]Override, error) {
	changes, err := q.policyChanges(ctx)
	return historyOf(changes), err
}

// historyOf returns what changes of policies, the oldest first, have set and cleared. Of the
// steps of one that has ended those count that were taken until then.
func historyOf(changes []store.StoredChange) []Override {
	list, ended := []Override{}, map[string]int64{}
	for _, c := range slices.Backward(changes) {
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

// policyChanges returns all changes of policies, the oldest first.
func (q *Queue) policyChanges(ctx context.Context) ([]store.StoredChange, error) {
	changes, err := q.store.Changes(ctx, store.AllChanges)
	return slices.DeleteFunc(changes, func(c store.StoredChange) bool {
		return c.What != statements.ChangePolicy && c.What != statements.ChangeClearPolicy
	}), err
}

// checkOverride checks what an override makes of policies: those of the kinds that the
// queue or a live worker handles, or that of the subject, or else the default policy.
func (q *Queue) checkOverride(ctx context.Context, s Subject, steps []OverrideStep) error {
	handlers, _ := q.handlers()
	known := phaser{q: q, handlers: handlers}
	known.readFleet(ctx)
	policies := map[string]backoff.Policy{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(handlers)), slices.Collect(maps.Keys(known.fleet.kinds))) {
		if r := known.ruleOf(TaskInfo{Kind: name}); r != nil && s.Policy == "" && (s.Kind == "" || s.Kind == name) {
			policies["kind "+name] = r.Policy
		}
	}
	if s.Policy != "" {
		texts, err := q.store.Policies(ctx, []string{s.Policy})
		if err != nil {
			return err
		}
		text, ok := texts[s.Policy]
		if !ok {
			return invalid("policy %s: it is not in the policies table; falldue ls --json prints the keys of tasks' own policies", s.Policy)
		}
		policy, err := backoff.Parse(text)
		if err != nil {
			return invalid("policy %s: the policies table has a text for it that cannot be read: %v", s.Policy, err)
		}
		policies["policy "+s.Policy] = policy
	}
	if len(policies) == 0 {
		policies["the default policy"] = backoff.Policy{}
	}
	var formulas []sqlgen.Formula
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		for _, step := range steps {
			made := step.Override.Of(policies[name])
			if err := made.Err(); err != nil {
				return fmt.Errorf("%w: %s under the override %q: %w", ErrInvalid, name, step.Override, err)
			}
			formulas = append(formulas, made.Delay())
		}
	}
	for part := range slices.Chunk(formulas, control.MaxChecked) {
		if err := q.store.CheckDelays(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
