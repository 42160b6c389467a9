package flow

import (
	"context"
	"fmt"
	"slices"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/statements"
)

// Counts contains the numbers of a task's dependencies in each state.
type Counts struct {
	Pending, Done, Dead, Cancelled, Deleted int64
}

// CountsOf counts the dependencies of a task, such as the tasks of a callback's batch. When the
// row of the task itself has been deleted, the error wraps [falldue.ErrNotFound]. A task without
// dependencies has zero counts.
func CountsOf(ctx context.Context, q *falldue.Queue, id int64) (Counts, error) {
	s := hooks.StoreOf(q)
	n, err := s.CountEdges(ctx, id)
	if err == nil && len(n) == 0 {
		_, err = s.Task(ctx, id) // it may run after nothing
	}
	if err != nil {
		return Counts{}, fmt.Errorf("count the tasks before task %d: %w", id, err)
	}
	return Counts{n[statements.OutcomePending], n[statements.StateDone], n[statements.StateDead], n[statements.OutcomeCancelled], n[statements.OutcomeDeleted]}, nil
}

// Deleted is the state of tasks that were deleted before they were done, for [Members].
const Deleted falldue.State = statements.OutcomeDeleted

// Members returns the IDs of the dependencies of a task that have ended in a state: [falldue.StateDone],
// [falldue.StateDead], [falldue.StateCancelled] or [Deleted]. With the state "", it returns the IDs of the dependencies
// that have not ended. It returns up to limit IDs that are greater than after, in ascending order. [falldue.ResultOf]
// reads the results of these tasks if the tasks are kept. The error wraps [falldue.ErrInvalid] for another state, or a
// limit that is not 1 to 10,000.
func Members(ctx context.Context, q *falldue.Queue, id int64, state falldue.State, after int64, limit int) ([]int64, error) {
	if limit < 1 || limit > 10_000 {
		return nil, fmt.Errorf("%w: limit %d: must be 1 to 10,000", falldue.ErrInvalid, limit)
	}
	allowed := []falldue.State{statements.OutcomePending, falldue.StateDone, falldue.StateDead, falldue.StateCancelled, Deleted}
	if !slices.Contains(allowed, state) {
		return nil, fmt.Errorf("%w: state %q: must be one of %q", falldue.ErrInvalid, state, allowed)
	}
	ids, err := hooks.StoreOf(q).Members(ctx, id, string(state), after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the tasks before task %d: %w", id, err)
	}
	return ids, nil
}

// OnDeath is the effect that a dead, cancelled or deleted dependency has on a task, as set by the task's [Option].
type OnDeath string

// The values of OnDeath.
const (
	StaysBlocked     OnDeath = "stays blocked"           // the default, without an option
	IsCancelled      OnDeath = "is cancelled"            // option CancelOnDeath
	RunsAnyway       OnDeath = "runs anyway"             // option RunAnyway
	RunsAtFirstDeath OnDeath = "runs at the first death" // option AtFirstDeath
)

// OnDeathOf returns the OnDeath of a blocked task, or "" if the task is not blocked.
func OnDeathOf(ctx context.Context, q *falldue.Queue, id int64) (OnDeath, error) {
	on, blocked, err := hooks.StoreOf(q).OnDeath(ctx, id)
	if err != nil || !blocked {
		return "", err
	}
	return map[statements.OnDeath]OnDeath{
		statements.DeathCancel: IsCancelled, statements.DeathRun: RunsAnyway, statements.DeathFirst: RunsAtFirstDeath,
		statements.DeathWait: StaysBlocked,
	}[on], nil
}
