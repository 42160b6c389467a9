package falldue

import (
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// OverrideOptions say more about an override of policies.
type OverrideOptions struct {
	// IncludeOwn makes tasks with a policy of their own follow, too: what is own in the
	// override is then that policy. By default they keep it. A Subject that has a Policy
	// includes its tasks always.
	IncludeOwn bool
	// Steps are overrides that replace the first one later, in the order of their times.
	Steps []OverrideStep
	// Until is when the override ends by itself, by the database's clock, which must be later
	// than now. The zero time is never.
	Until time.Time
	// Who and Why are stored with the override, for people. Who has up to 255 bytes and Why
	// up to 16 KiB.
	Who, Why string
}

// OverrideStep is an override that holds from a time after the first one on.
type OverrideStep struct {
	After    time.Duration // since the override was set, by the database's clock
	Override backoff.Override
}

// Override is an override of policies as [Queue.Overrides] lists it.
type Override struct {
	Subject
	// Override is the step that holds now, or the last one that has held. Steps are all of
	// them, of which the first has After 0.
	Override   backoff.Override
	Steps      []OverrideStep
	IncludeOwn bool
	At, Until  time.Time // when it was set, and when it ends; a zero Until is never
	Who, Why   string
	// Cleared reports that the policies were set back to those of the code. Only the history
	// has such an entry.
	Cleared bool
}

// Names reports whether a task is of the override's subject and follows it. What counts is
// its Queue, Kind, Policy and Key.
func (o Override) Names(t TaskInfo) bool {
	return control.Subject(o.Subject).Follows(o.IncludeOwn, t.Queue, store.Lane{Kind: t.Kind, Policy: t.Policy, Key: t.Key})
}

// maxOverride is the greatest size of an override in the table, in bytes.
const maxOverride = 60_000

// storeOverride returns an override as the table has it.
func storeOverride(steps []OverrideStep, includeOwn bool) (string, error) {
	stored := control.Override{IncludeOwn: includeOwn}
	last := time.Duration(-1)
	for _, step := range steps {
		if step.Override.String() == "" {
			return "", invalid("an override without a clause; use backoff.ParseOverride")
		}
		if step.After <= last || step.After > maxDelay {
			return "", invalid("a step after %v; allowed are times after that of the step before, up to %s", step.After, longestDelay)
		}
		last = step.After
		stored.Steps = append(stored.Steps, control.Step{After: step.After, Formula: step.Override})
	}
	text := stored.Text()
	if len(text) > maxOverride {
		return "", invalid("an override of %d steps and %d bytes; allowed are %d bytes", len(steps), len(text), maxOverride)
	}
	return text, nil
}

// readOverride returns a change of policies, or false if this release cannot read it.
func readOverride(c store.StoredChange) (o Override, ok bool) {
	o = Override{At: store.Time(c.Created), Who: c.Who, Why: c.Why, Cleared: c.What == statements.ChangeClearPolicy}
	if c.Ends > 0 {
		o.Until = store.Time(c.Ends)
	}
	subject, ok := control.ParseSubject(c.Subject)
	o.Subject = Subject(subject)
	if !ok || o.Cleared {
		return o, ok
	}
	read, err := control.ParseOverride(c.Value)
	if err != nil {
		return o, false
	}
	o.IncludeOwn = read.IncludeOwn
	for _, step := range read.Steps {
		o.Steps = append(o.Steps, OverrideStep{step.After, step.Formula})
	}
	for _, step := range o.Steps {
		if step.After <= max(store.Duration(c.Now-c.Created), 0) {
			o.Override = step.Override
		}
	}
	return o, true
}
