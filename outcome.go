package falldue

import (
	"github.com/falldue/falldue/internal/run"
)

// Outcome is how a run of a task ended: a word such as "retried_after", which can be a label of
// a metric.
type Outcome string

// The outcomes of runs.
const (
	// OutcomeNone is the outcome of a run that has not ended.
	OutcomeNone Outcome = ""
	// OutcomeDone means that the handler succeeded.
	OutcomeDone = Outcome(run.OutcomeDone)
	// OutcomeRetried means that the attempt failed and the task runs again under its policy.
	OutcomeRetried = Outcome(run.OutcomeRetried)
	// OutcomeRetriedAfter means that the attempt failed and the task runs again after the
	// time that the handler asked for with [RetryAfter].
	OutcomeRetriedAfter = Outcome(run.OutcomeRetriedAfter)
	// OutcomeSnoozed means that the handler asked for a [Snooze].
	OutcomeSnoozed = Outcome(run.OutcomeSnoozed)
	// OutcomeDiscarded means that the task is dead because the handler asked for that with
	// [Discard].
	OutcomeDiscarded = Outcome(run.OutcomeDiscarded)
	// OutcomeDead means that the attempt failed and the task is dead, since its policy allows
	// no further attempt. A task is also dead, without a run, if its last attempt was lost.
	OutcomeDead = Outcome(run.OutcomeDead)
	// OutcomeCancelled means that the task was cancelled while it ran. What the handler
	// returned does not count.
	OutcomeCancelled = Outcome(run.OutcomeCancelled)
	// OutcomeLost means that the lease ended before the worker settled the task, which runs
	// again. What the handler returned does not count, unless the task was settled by a
	// statement whose answer was lost.
	OutcomeLost = Outcome(run.OutcomeLost)
	// OutcomeReleased means that the worker has released the task: it stopped while the
	// handler ran, or the handler never began. The run uses up no attempt.
	OutcomeReleased = Outcome(run.OutcomeReleased)
)
