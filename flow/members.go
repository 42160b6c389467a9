package flow

import (
	"context"
	"fmt"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/statements"
)

// Counts are how many of the tasks after which one runs have ended, and how. Those that were
// cancelled, deleted or retried are counted within 15 seconds.
type Counts struct {
	Pending, Done, Dead, Cancelled, Deleted int64
}

// CountsOf counts the tasks after which a task runs: those of its batch, for a callback. They
// are known as long as the task itself is.
func CountsOf(ctx context.Context, q *falldue.Queue, id int64) (Counts, error) {
	n, err := hooks.QueueOf(q).Store().CountEdges(ctx, id)
	if err != nil {
		return Counts{}, fmt.Errorf("falldue: count the tasks before task %d: %w", id, err)
	}
	return Counts{n[statements.OutcomePending], n[statements.StateDone], n[statements.StateDead], n[statements.OutcomeCancelled], n[statements.OutcomeDeleted]}, nil
}

// Member is a task after which another one runs.
type Member struct {
	ID int64
	// State is [falldue.Done], [falldue.Dead] or [falldue.Cancelled], "deleted", or "" for a
	// task that has not ended. [falldue.ResultOf] reads the result of one that is kept.
	State falldue.State
}

// Members returns up to limit of the tasks after which a task runs, in the order of their
// ids, after the one with the id after.
func Members(ctx context.Context, q *falldue.Queue, id, after int64, limit int) ([]Member, error) {
	if limit < 1 || limit > 10_000 {
		return nil, fmt.Errorf("%w: limit %d; allowed are 1 to 10,000", falldue.ErrInvalid, limit)
	}
	edges, err := hooks.QueueOf(q).Store().Members(ctx, id, after, limit)
	if err != nil {
		return nil, fmt.Errorf("falldue: read the tasks before task %d: %w", id, err)
	}
	list := make([]Member, len(edges))
	for i, e := range edges {
		list[i] = Member{e.Member, falldue.State(e.Outcome)}
	}
	return list, nil
}
