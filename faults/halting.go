package faults

import (
	"context"
	"errors"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

const (
	haltingName = "halting"
	// One job in haltingEvery is part of a sequence that a dead job halts, and one enqueue in
	// mendEvery retries the dead ones, in runs that have limited jobs, too.
	haltingEvery, mendEvery = 19, 20
)

// retryHalting retries the dead jobs that halt their sequences. The jobs behind them wait until they are done.
// retryHalting returns the number of dead jobs.
func retryHalting(ctx context.Context, q *falldue.Queue) (int, error) {
	page, err := ops.New(q).Tasks(ctx, ops.Filter{Kind: haltingName, State: falldue.StateDead})
	if err != nil {
		return 0, err
	}
	for _, t := range page.Tasks {
		err := q.Retry(ctx, t.ID, falldue.RetryOptions{InPlace: true, Fence: &t.Fence})
		if err != nil && !errors.Is(err, falldue.ErrWrongState) { // another process was first
			return 0, err
		}
	}
	return len(page.Tasks), nil
}
