package falldue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
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
	return follows(o.Subject, o.IncludeOwn, t.Queue, store.Lane{Kind: t.Kind, Policy: t.Policy, Key: t.Key})
}

// follows reports whether the tasks of a lane follow an override.
func follows(s Subject, includeOwn bool, queue string, at store.Lane) bool {
	return (at.Policy == "" || includeOwn || s.Policy != "") && s.names(queue, at)
}

// Compare orders subjects, the most specific first: of those that name a task, the first
// decides which policy holds for it.
func (s Subject) Compare(other Subject) int {
	rank := func(s Subject) (n int) {
		for _, field := range []string{s.Key, s.Policy, s.Kind, s.Queue} {
			if n *= 2; field != "" {
				n++
			}
		}
		return n
	}
	return cmp.Or(cmp.Compare(rank(other), rank(s)), cmp.Compare(s.String(), other.String()))
}

// storedOverride is an override in the table of changes.
type storedOverride struct {
	Steps      []storedStep `json:"steps"`
	IncludeOwn bool         `json:"include_own,omitempty"`
}

type storedStep struct {
	After  int64  `json:"after_us"` // since the change
	Policy string `json:"policy"`
}

// maxOverride is the greatest size of an override in the table, in bytes.
const maxOverride = 60_000

// storeOverride returns an override as the table has it.
func storeOverride(steps []OverrideStep, includeOwn bool) (string, error) {
	stored := storedOverride{IncludeOwn: includeOwn}
	last := time.Duration(-1)
	for _, step := range steps {
		if step.Override.String() == "" {
			return "", invalid("an override without a clause; use backoff.ParseOverride")
		}
		if step.After <= last || step.After > maxDelay {
			return "", invalid("a step after %v; allowed are times after that of the step before, up to %s", step.After, longestDelay)
		}
		last = step.After
		stored.Steps = append(stored.Steps, storedStep{step.After.Microseconds(), step.Override.String()})
	}
	text, err := json.Marshal(stored)
	if err == nil && len(text) > maxOverride {
		err = invalid("an override of %d steps and %d bytes; allowed are %d bytes", len(steps), len(text), maxOverride)
	}
	return string(text), err
}

// parseStored reads what storeOverride returns.
func parseStored(value string) (steps []OverrideStep, includeOwn bool, err error) {
	var stored storedOverride
	if err := json.Unmarshal([]byte(value), &stored); err != nil {
		return nil, false, fmt.Errorf("an override that is not JSON: %w", err)
	}
	for _, step := range stored.Steps {
		policy, err := backoff.ParseOverride(step.Policy)
		if err != nil {
			return nil, false, err
		}
		steps = append(steps, OverrideStep{store.Duration(step.After), policy})
	}
	if len(steps) == 0 {
		return nil, false, fmt.Errorf("an override without steps")
	}
	return steps, stored.IncludeOwn, nil
}

// readOverride returns a change of policies, or false if this release cannot read it.
func readOverride(c store.StoredChange) (o Override, ok bool) {
	o = Override{At: store.Time(c.Created), Who: c.Who, Why: c.Why, Cleared: c.What == statements.ChangeClearPolicy}
	if c.Ends > 0 {
		o.Until = store.Time(c.Ends)
	}
	if o.Subject, ok = parseSubject(c.Subject); !ok || o.Cleared {
		return o, ok
	}
	var err error
	if o.Steps, o.IncludeOwn, err = parseStored(c.Value); err != nil {
		return o, false
	}
	for _, step := range o.Steps {
		if step.After <= max(store.Duration(c.Now-c.Created), 0) {
			o.Override = step.Override
		}
	}
	return o, true
}
