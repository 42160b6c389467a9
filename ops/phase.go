package ops

import (
	"context"

	"github.com/falldue/falldue"
)

// SetPhases sets the Phase of tasks that were just read, by the conditions of [Ops.Why]. There is one exception: as
// long as the first task of a sequence has not begun, due tasks behind it have [falldue.PhaseDue], too. SetPhases reads
// the per-task policies of tasks that have failed, the policies and limits that live workers announce, pauses,
// overrides ([Ops.SetPolicy]) and, if any task is due, the permits of limits. It also uses the policies of
// [Ops.WithPolicies] and of the kinds that the queue handles, and the limits of these kinds if no live worker handles
// them.
func (o *Ops) SetPhases(ctx context.Context, tasks []falldue.TaskInfo) error {
	var waiting, due []*falldue.TaskInfo
	var keys []string
	for i := range tasks {
		t := &tasks[i]
		switch {
		case finished(t.State), t.State == falldue.StateBlocked:
			t.Phase = falldue.Phase(t.State)
		case Running(*t):
			t.Phase = falldue.PhaseRunning
		default:
			waiting = append(waiting, t)
			if t.Policy != "" {
				keys = append(keys, t.Policy)
			}
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	s, err := o.snapshot(ctx, keys...)
	if err != nil {
		return err
	}
	for _, t := range waiting {
		switch t.Phase = s.phase(*t); {
		case t.Phase != falldue.PhaseDue:
		case s.paused(*t):
			t.Phase = falldue.PhasePaused
		default:
			due = append(due, t)
		}
	}
	return o.setLimited(ctx, s, due)
}

// phase returns the phase of a waiting task without regard to pauses and limits.
func (s snapshot) phase(t falldue.TaskInfo) falldue.Phase {
	due, known := s.due(t)
	switch {
	case !known, s.Unreadable[t.Policy] != nil:
		return falldue.PhaseUnknownPolicy
	case !due.After(t.Now):
		return falldue.PhaseDue
	case failed(t):
		return falldue.PhaseBackingOff
	case t.State == falldue.StateSnoozed:
		return falldue.PhaseSnoozed
	}
	return falldue.PhaseScheduled
}

// setLimited sets the phases of due tasks that a limit does not admit.
func (o *Ops) setLimited(ctx context.Context, s snapshot, due []*falldue.TaskInfo) error {
	limits, err := o.limitStates(ctx, s, due...)
	if err != nil {
		return err
	}
	for i, t := range due {
		if limits[i].heldFrom(t.ID) {
			t.Phase = falldue.PhaseLimited
		}
	}
	return nil
}

// failed reports whether a task waits and has failed or been lost, so that a delay counts.
func failed(t falldue.TaskInfo) bool { return !finished(t.State) && laneOfTask(t).Delayed() }

// finished reports whether tasks of a state have ended.
func finished(s falldue.State) bool {
	return s == falldue.StateDone || s == falldue.StateDead || s == falldue.StateCancelled
}
