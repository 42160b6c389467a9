package falldue

import (
	"encoding/json"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
)

// State is the state of a task.
type State string

// The states of a task.
const (
	// StateBlocked tasks wait for other tasks to end. See package flow.
	StateBlocked State = statements.StateBlocked
	// StateOpen tasks wait or run. A waiting task is due when its policy's delay has passed.
	StateOpen State = statements.StateOpen
	// StateSnoozed tasks are due at [TaskInfo].UpdatedAt, and the policy's delay does not apply. Tasks have this state after
	// [Snooze], [Again] or [RetryAfter], or because their worker stopped while they ran. With
	// [KindConfig].ImmediateLostRetries, a running task can have this state, too.
	StateSnoozed State = statements.StateSnoozed
	// StateDone tasks succeeded. They are kept for their DoneRetention.
	StateDone State = statements.StateDone
	// StateDead tasks failed and have no attempt left. They are kept for their DeadRetention and can be retried.
	StateDead State = statements.StateDead
	// StateCancelled tasks were cancelled. They are kept for their CancelledRetention and can be retried.
	StateCancelled State = statements.StateCancelled
)

// TaskInfo describes a task as the table stores it.
type TaskInfo struct {
	ID          int64
	Queue, Kind string
	// Policy is the key of the per-task policy, or "" if the task has its kind's policy.
	Policy string
	// Key is the task key in its stored form ([EnqueueOptions].Key), or "" if there is none.
	Key      string
	Priority int
	State    State
	// Phase is the reason why a task waits. Package ops sets it. It is "" in a task from [Queue.Task].
	Phase Phase
	// Attempts is the number of attempts, including a running one. Runs that ended
	// with a snooze, or because their worker stopped, are not counted.
	Attempts int
	// MaxAttempts is [EnqueueOptions].MaxAttempts, or 0 if the policy's limit applies.
	MaxAttempts int
	// Timeout is [EnqueueOptions].Timeout, or 0 if the kind's timeout applies.
	Timeout time.Duration
	// ExpireAt is [EnqueueOptions].ExpireAt, or zero if there is none or the task was retried ([Queue.Retry]).
	ExpireAt time.Time
	// Fence increases with each claim of the task, with a cancel, with [ConflictReplace], and with the retry of a done
	// task.
	Fence int64
	// UpdatedAt is the start of the task's wait: the start time of a new task, or the time of the last failure plus the
	// jitter. For a running task, it is the end of the lease, and for a snoozed task the end of the snooze. For a
	// finished task, it is when the task finished.
	UpdatedAt time.Time
	// CreatedAt is when the task was enqueued.
	CreatedAt time.Time
	// FirstAttemptedAt is when the first attempt began, and AttemptedAt when the latest run began. Both are zero before
	// the first run.
	FirstAttemptedAt, AttemptedAt time.Time
	// Now is the time of the database's clock when the task was read.
	Now time.Time
	// ClaimedBy is the ID of the worker that runs the task, or that lost its lease. Otherwise, ClaimedBy is "".
	ClaimedBy string
	// LastError is the text of the latest failure, cut after 16 KiB, or "".
	LastError string
	// Payload is the task's arguments as JSON.
	Payload json.RawMessage
	// Result is the result that the handler set, as JSON, or nil.
	Result json.RawMessage
	// Metadata is the task's [EnqueueOptions].Metadata, or nil.
	Metadata map[string]string
	// DecodeError is the error of Config.Codec if it could not decode the payload or the result. Payload and Result are
	// then nil.
	DecodeError error
}

// Due returns when the task falls due under policy p: the per-task policy, or else the kind's. For a running task,
// Due returns when the task would run again if its worker died now. For a finished task, it returns the zero time.
func (t TaskInfo) Due(p backoff.Policy) time.Time {
	switch t.State {
	case StateOpen:
		delay, _ := p.Wait(int64(t.Attempts))
		return t.UpdatedAt.Add(delay)
	case StateSnoozed:
		return t.UpdatedAt
	}
	return time.Time{}
}

// Progress is how far a task has come, as reported by its handler.
type Progress struct {
	// Fraction is the finished part of the work, from 0 to 1, rounded to a millionth.
	Fraction float64
	Message  string
	// Fence is the fencing token of the run that reported. While a task runs again, the progress of the previous run stays
	// until the new run reports.
	Fence int64
	// UpdatedAt is when the progress was written, by the database's clock, or zero without progress.
	UpdatedAt time.Time
}

// Attempt is the record of an attempt that did not succeed.
type Attempt struct {
	// Attempt is the number of the attempt, and Fence is the fencing token of its claim.
	Attempt int
	Fence   int64
	// Outcome is the outcome of the attempt: OutcomeRetried, OutcomeDead or OutcomeLost.
	Outcome Outcome
	// Worker is the ID of the worker that ran the task.
	Worker string
	// FinishedAt is when the attempt was recorded, by the database's clock.
	FinishedAt time.Time
	// Duration is how long the handler ran, or 0 for a lost attempt.
	Duration time.Duration
	// Error is the text of the error, cut after 16 KiB.
	Error string
	// Stack is the stack of a panic or of a stuck handler, or "".
	Stack string
}

// Outcome is how a run of a task ended: a word such as "retried_after", which can be a label of a metric.
type Outcome string

// The outcomes of runs.
const (
	// OutcomeNone is the outcome of a run that has not ended.
	OutcomeNone Outcome = ""
	// OutcomeDone means that the handler succeeded.
	OutcomeDone = Outcome(outcome.Done)
	// OutcomeRetried means that the attempt failed and the task runs again under its policy.
	OutcomeRetried = Outcome(outcome.Retried)
	// OutcomeRetriedAfter means that the attempt failed and the task runs again after the time passed to [RetryAfter].
	OutcomeRetriedAfter = Outcome(outcome.RetriedAfter)
	// OutcomeSnoozed means that the handler returned [Snooze].
	OutcomeSnoozed = Outcome(outcome.Snoozed)
	// OutcomeRepeated means that the handler returned [Again]: it succeeded, and the task runs again.
	OutcomeRepeated = Outcome(outcome.Repeated)
	// OutcomeDiscarded means that the task is dead because its handler returned [Discard].
	OutcomeDiscarded = Outcome(outcome.Discarded)
	// OutcomeDead means that the attempt failed and the task is dead, since its policy allows
	// no further attempt. A task is also dead, without a run, if its last attempt was lost.
	OutcomeDead = Outcome(outcome.Dead)
	// OutcomeCancelled means that the task was cancelled while it ran. The handler's return value does not count.
	OutcomeCancelled = Outcome(outcome.Cancelled)
	// OutcomeExpired means that the task was cancelled instead of run, since it had not started by its
	// [EnqueueOptions].ExpireAt.
	OutcomeExpired = Outcome(outcome.Expired)
	// OutcomeLost means that the lease ended before the worker recorded the outcome, so the task is retried. The handler's
	// return value does not count, unless the statement that recorded the outcome succeeded and only its answer was lost.
	OutcomeLost = Outcome(outcome.Lost)
	// OutcomeReleased means that the worker has released the task: the worker stopped while the handler
	// ran, or the handler never began. The run uses up no attempt.
	OutcomeReleased = Outcome(outcome.Released)
)

// Phase is more precise than [State]: it distinguishes the reasons why a task waits.
type Phase string

// The phases of unfinished tasks. Finished tasks are in the phases PhaseDone, PhaseDead and PhaseCancelled.
const (
	// PhaseBlocked tasks wait for other tasks to end. See package flow.
	PhaseBlocked Phase = Phase(StateBlocked)
	// PhaseRunning tasks have been claimed, and their lease has not expired.
	PhaseRunning Phase = "running"
	// PhaseDue tasks wait only for a worker.
	PhaseDue Phase = "due"
	// PhaseScheduled tasks have not run yet, and their start time is in the future.
	PhaseScheduled Phase = "scheduled"
	// PhaseBackingOff tasks have failed, or their worker died. They wait for the delay of their policy.
	PhaseBackingOff Phase = "backing_off"
	// PhaseSnoozed tasks wait because their handler returned [Snooze], [Again] or [RetryAfter].
	PhaseSnoozed Phase = "snoozed"
	// PhasePaused tasks are due, but paused.
	PhasePaused Phase = "paused"
	// PhaseLimited tasks are due, but a limit is reached.
	PhaseLimited Phase = "limited"
	// PhaseUnknownPolicy tasks have failed or been lost, and may be due or backing off. Their policy is unknown: no live
	// worker handles their kind, and neither does this process.
	PhaseUnknownPolicy Phase = "unknown_policy"

	PhaseDone      Phase = Phase(StateDone)
	PhaseDead      Phase = Phase(StateDead)
	PhaseCancelled Phase = Phase(StateCancelled)
)
