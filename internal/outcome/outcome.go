// Package outcome decides how a run ends, from the error of the handler and the task's policy: which
// state the task goes to, and when the task is due again.
package outcome

import "github.com/falldue/falldue/internal/statements"

// Outcome is how a run of a task ended. The public package documents the values.
type Outcome string

// The outcomes of runs.
const (
	Done         Outcome = "done"
	Retried      Outcome = Outcome(statements.OutcomeRetried)
	RetriedAfter Outcome = "retried_after"
	Snoozed      Outcome = "snoozed"
	Repeated     Outcome = "repeated"
	Discarded    Outcome = "discarded"
	Dead         Outcome = Outcome(statements.OutcomeDead)
	Cancelled    Outcome = "cancelled"
	Expired      Outcome = "expired"
	Lost         Outcome = Outcome(statements.OutcomeLost)
	Released     Outcome = "released"
)
