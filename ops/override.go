package ops

import (
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// OverrideOptions are the settings of [Ops.SetPolicy].
type OverrideOptions struct {
	// IncludeOwn applies the override to tasks with a per-task policy, too. For these tasks, original in the
	// override then stands for the formula of the per-task policy. By default, such tasks keep their policy. A Subject
	// with a Policy always includes the tasks with that policy.
	IncludeOwn bool
	// Steps are overrides that later replace the formula passed to SetPolicy, in the order of their times.
	Steps []OverrideStep
	// Until is when the override ends automatically, by the database's clock. It must be later than now. The zero time
	// means never.
	Until time.Time
	// Note is stored with the override.
	falldue.Note
}

// OverrideStep is a step of an override. When After has passed since the override was set, its Formula replaces the
// previous step's.
type OverrideStep struct {
	After   time.Duration // the time since the override was set, by the database's clock
	Formula backoff.Override
}

// Override is an override of policies as [Ops.Overrides] lists it.
type Override struct {
	falldue.Subject
	// Formula is the formula of the last step for which After has passed. Steps are all steps, and the first step has
	// After 0.
	Formula    backoff.Override
	Steps      []OverrideStep
	IncludeOwn bool
	At, Until  time.Time // when the override was set, and when it ends; a zero Until means never
	falldue.Note
	// Cleared reports whether this entry cleared an override, so that the code's policies apply again. Only
	// [Ops.OverrideHistory] returns such entries.
	Cleared bool
}

// Names reports whether the override selects a task, by the task's Queue, Kind, Policy and Key.
func (o Override) Names(t falldue.TaskInfo) bool {
	return control.Subject(o.Subject).Follows(o.IncludeOwn, t.Queue, laneOfTask(t))
}

// AppliedBy reports whether a worker applies the override, according to the worker's last heartbeat. For a Cleared
// entry, AppliedBy reports whether the worker no longer applies an override of the subject. Workers report a change
// within two seconds after the override was set. They report only the 100 newest overrides that they apply, so
// AppliedBy returns false for older overrides.
func (o Override) AppliedBy(w Worker) bool {
	at, applied := w.Applied[o.String()]
	if o.Cleared {
		return !applied
	}
	return applied && at.Equal(o.At)
}

// compareSubjects orders subjects, the most specific first.
func compareSubjects(a, b falldue.Subject) int {
	return control.Subject(a).Compare(control.Subject(b))
}

// maxOverride is the greatest size of an override in the table, in bytes.
const maxOverride = 60_000

// storeOverride returns an override as the table has it.
func storeOverride(steps []OverrideStep, includeOwn bool) (string, error) {
	stored := control.Override{IncludeOwn: includeOwn}
	last := time.Duration(-1)
	for _, step := range steps {
		if step.Formula.String() == "" {
			return "", invalid("the override has no clause: make it with backoff.ParseOverride")
		}
		if step.After <= last || step.After > maxDelay {
			return "", invalid("a step with After %v: must be later than the step before, and at most %s", step.After, longestDelay)
		}
		last = step.After
		stored.Steps = append(stored.Steps, control.Step(step))
	}
	text := stored.Text()
	if len(text) > maxOverride {
		return "", invalid("an override of %d steps has %d bytes: must have at most %d", len(steps), len(text), maxOverride)
	}
	return text, nil
}

// readOverride returns a change of policies, or false if this release cannot read it.
func readOverride(c store.StoredChange) (o Override, ok bool) {
	o = Override{At: store.Time(c.Created), Note: falldue.Note{Who: c.Who, Why: c.Why}, Cleared: c.What == statements.ChangeClearPolicy}
	if c.Ends > 0 {
		o.Until = store.Time(c.Ends)
	}
	subject, ok := control.ParseSubject(c.Subject)
	o.Subject = falldue.Subject(subject)
	if !ok || o.Cleared {
		return o, ok
	}
	read, err := control.ParseOverride(c.Value)
	if err != nil {
		return o, false
	}
	o.IncludeOwn = read.IncludeOwn
	for _, step := range read.Steps {
		o.Steps = append(o.Steps, OverrideStep(step))
	}
	for _, step := range o.Steps {
		if step.After <= max(store.Duration(c.Now-c.Created), 0) {
			o.Formula = step.Formula
		}
	}
	return o, true
}
