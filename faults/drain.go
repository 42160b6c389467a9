package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue"
)

// drained waits until no task waits or runs any more.
func drained(ctx context.Context, q *falldue.Queue) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var left int64
	var err error
	for {
		var counts []falldue.Count
		if counts, err = q.Counts(ctx); err == nil {
			left = 0
			for _, c := range counts {
				if c.State != falldue.Done && c.State != falldue.Dead {
					left += c.Tasks
				}
			}
			if left == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d tasks are left: %w", left, ctx.Err()), err)
		case <-tick.C:
		}
	}
}
