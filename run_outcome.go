package falldue

import "github.com/falldue/falldue/internal/statements"

// outcome is how a run of a task ended. The public package documents the values.
type outcome string

const (
	outcomeDone         outcome = "done"
	outcomeRetried      outcome = outcome(statements.OutcomeRetried)
	outcomeRetriedAfter outcome = "retried after"
	outcomeSnoozed      outcome = "snoozed"
	outcomeDiscarded    outcome = "discarded"
	outcomeDead         outcome = outcome(statements.OutcomeDead)
	outcomeCancelled    outcome = "cancelled"
	outcomeLost         outcome = outcome(statements.OutcomeLost)
	outcomeGivenBack    outcome = "given back"
)
