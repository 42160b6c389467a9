package run

import "github.com/falldue/falldue/internal/statements"

// Outcome is how a run of a task ended. The public package documents the values.
type Outcome string

// The outcomes of runs.
const (
	OutcomeDone         Outcome = "done"
	OutcomeRetried      Outcome = Outcome(statements.OutcomeRetried)
	OutcomeRetriedAfter Outcome = "retried_after"
	OutcomeSnoozed      Outcome = "snoozed"
	OutcomeDiscarded    Outcome = "discarded"
	OutcomeDead         Outcome = Outcome(statements.OutcomeDead)
	OutcomeCancelled    Outcome = "cancelled"
	OutcomeLost         Outcome = Outcome(statements.OutcomeLost)
	OutcomeReleased     Outcome = "released"
)
