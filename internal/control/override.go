package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Override replaces the policies of a subject's tasks. The value of a change is its Text.
type Override struct {
	Steps []Step
	// IncludeOwn makes tasks with a per-task policy follow the override, too.
	IncludeOwn bool
}

// Step is a formula that takes effect a time after the change was made.
type Step struct {
	After   time.Duration
	Formula backoff.Override
}

// Follows reports whether the tasks of a lane follow an override of the subject.
func (s Subject) Follows(includeOwn bool, queue string, at store.Lane) bool {
	return (at.Policy == "" || includeOwn || s.Policy != "") && s.Selects(queue, at)
}

type storedOverride struct {
	Steps      []storedStep `json:"steps"`
	IncludeOwn bool         `json:"include_own,omitempty"`
}

type storedStep struct {
	After  int64  `json:"after_us"`
	Policy string `json:"policy"`
}

// Text returns the override as the table of changes has it.
func (o Override) Text() string {
	stored := storedOverride{IncludeOwn: o.IncludeOwn}
	for _, step := range o.Steps {
		stored.Steps = append(stored.Steps, storedStep{step.After.Microseconds(), step.Formula.String()})
	}
	text, _ := json.Marshal(stored) // has numbers and texts only
	return string(text)
}

// ParseOverride reads what Text returns.
func ParseOverride(text string) (o Override, err error) {
	var stored storedOverride
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return o, fmt.Errorf("the override is not JSON: %w", err)
	}
	o.IncludeOwn = stored.IncludeOwn
	for _, step := range stored.Steps {
		formula, err := backoff.ParseOverride(step.Policy)
		if err != nil {
			return Override{}, err
		}
		o.Steps = append(o.Steps, Step{store.Duration(step.After), formula})
	}
	if len(o.Steps) == 0 {
		return o, errors.New("the override has no steps")
	}
	return o, nil
}
