package falldue

// Phase says what a task waits for, if it does, more exactly than its [State].
type Phase string

// The phases of tasks that are not finished. Those of finished tasks are PhaseDone,
// PhaseDead and PhaseCancelled.
const (
	// PhaseBlocked tasks run after other tasks, which have not all ended; see package flow.
	PhaseBlocked Phase = Phase(StateBlocked)
	// PhaseRunning tasks have been claimed, and their lease lasts.
	PhaseRunning Phase = "running"
	// PhaseDue tasks wait for a worker only.
	PhaseDue Phase = "due"
	// PhaseScheduled tasks have never been tried, and their time has not come.
	PhaseScheduled Phase = "scheduled"
	// PhaseBackingOff tasks have failed, or their worker died, and they wait for the delay of
	// their policy.
	PhaseBackingOff Phase = "backing_off"
	// PhaseSnoozed tasks wait because their handler said so, by [Snooze] or [RetryAfter].
	PhaseSnoozed Phase = "snoozed"
	// PhasePaused tasks are due, and a pause holds them back.
	PhasePaused Phase = "paused"
	// PhaseLimited tasks are due, and a limit admits no more now.
	PhaseLimited Phase = "limited"
	// PhaseUnknownPolicy tasks have failed or been lost, and their policy is not known, so that they
	// may be due or backing off: no live worker handles their kind, and neither does this
	// process.
	PhaseUnknownPolicy Phase = "unknown_policy"

	PhaseDone      Phase = Phase(StateDone)
	PhaseDead      Phase = Phase(StateDead)
	PhaseCancelled Phase = Phase(StateCancelled)
)
