package run

import (
	"context"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// SettleOne settles a run that the dispatcher has passed on, and reports whether its claim was
// lost.
func (s *Settler) SettleOne(ctx context.Context, r *Run) (lost bool, err error) {
	if len(s.In) == 0 {
		return true, nil // it was lost while it ran, and the dispatcher has said so
	}
	batch, mode := []*Run{r}, waitForLocks
	for try := 0; ; try++ {
		left, late, err := s.try(ctx, batch, mode)
		switch {
		case err != nil && late && mode == waitForLocks:
			mode = skipLocked
			continue
		case err != nil:
			return false, err
		case len(left.Locked) == 0:
			if lost = len(left.Lost) > 0; lost {
				s.Leases.gone(ctx, batch) // a test that moves the clock ends leases before their time
				s.Leases.ended(ctx, r)
			}
			s.finish(batch, store.SetOf(left.Lost), mode)
			s.deaths.report()
			return lost, nil
		}
		if err := retry.Pause(ctx, retry.ErrorPause(try)); err != nil {
			return false, err
		}
	}
}
