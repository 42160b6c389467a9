package run

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Handler describes a kind whose tasks the worker runs.
type Handler struct {
	Kind, Queue string
	Priority    int
	// Timeout is the kind's timeout, which Run applies, or 0. The worker announces it.
	Timeout time.Duration
	// Limits are the kind's limits.
	Limits []store.Limit
	// LostRetries is the number of first attempts after which a lost task is due as soon as
	// its lease ends.
	LostRetries int
	Retention   Retention
	// Weight returns the weight of tasks by the first part of their keys. It is nil if all weights are 1.
	Weight func(firstPart string) int
	Policy *control.CompiledPolicy
	// Run runs a task, and returns nil if it succeeded.
	Run  func(ctx context.Context, r *Run) *outcome.Failure
	Pace pace
}

// Retention is how long finished tasks stay in the table, by their states, or Forever. With a Done of
// 0, done tasks are deleted when they are settled.
type Retention struct {
	Done, Dead, Cancelled time.Duration
	MaxDone               int // done tasks of the kind that stay in a queue; 0 is no limit
}

// Forever is the retention of tasks that are not deleted.
const Forever = time.Duration(-1)

// Of returns how long tasks that finished in a state stay.
func (r Retention) Of(state string) time.Duration {
	switch state {
	case statements.StateDone:
		return r.Done
	case statements.StateDead:
		return r.Dead
	}
	return r.Cancelled
}

// MaxWeight is the greatest weight of a turn.
const MaxWeight = 1000

// WeightOf returns the weight of tasks by the first part of their keys: 1 to MaxWeight. If the user's function panics,
// the weight is 1, so that claims continue.
func (h *Handler) WeightOf(firstPart string) (weight int) {
	if h.Weight == nil {
		return 1
	}
	defer func() {
		if recover() != nil {
			weight = 1
		}
	}()
	return min(max(h.Weight(firstPart), 1), MaxWeight)
}

// Running returns the state of a task while an attempt of it runs.
func (h *Handler) Running(attempt int) string {
	if attempt <= h.LostRetries {
		return statements.StateSnoozed // due when its lease ends, without a delay
	}
	return statements.StateOpen
}

// keepsDone reports whether done tasks stay in the table.
func (h *Handler) keepsDone() bool { return h.Retention.Done != 0 }

// PoliciesOf returns the policies of kinds, by their names.
func PoliciesOf(handlers map[string]*Handler) map[string]*control.CompiledPolicy {
	policies := make(map[string]*control.CompiledPolicy, len(handlers))
	for kind, h := range handlers {
		policies[kind] = h.Policy
	}
	return policies
}
