package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// drained waits until no task waits or runs any more, but for those that are to wait for a
// retry of a dead one. It retries the dead ones that halt their sequences.
func drained(ctx context.Context, q *falldue.Queue) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var left int64
	var err error
	for {
		var counts []ops.Count
		if counts, err = ops.New(q).Counts(ctx); err == nil {
			left = 0
			blocked := int64(0)
			for _, c := range counts {
				switch c.State {
				case falldue.StateOpen, falldue.StateSnoozed:
					left += c.Tasks
				case falldue.StateBlocked:
					blocked += c.Tasks
				}
			}
			if err == nil {
				var dead int
				dead, err = retryHalting(ctx, q)
				left += int64(dead)
			}
			if left == 0 && blocked > 0 {
				left, err = unfinished(ctx, q) // some may have been opened meanwhile
			}
			if left == 0 && err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d tasks are left: %w", left, context.Cause(ctx)), err)
		case <-tick.C:
		}
	}
}
