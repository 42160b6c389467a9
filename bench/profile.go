package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// profileKinds and profileLevels are how many kinds and numbers of attempts there are in the
// measure profile_s. They have no common divisor, so all 240 pairs occur.
const profileKinds, profileLevels = 15, 16

// profileReads is how often the profile is read.
const profileReads = 3

// profileTime measures how long package ops takes to read the profile of tasks that wait after
// failures, config.backlog of them, of 240 lanes and with anchors all over a day.
func profileTime(ctx context.Context, c *config, db database, s subject) (values, error) {
	if !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	f := s.(*falldueSubject)
	if err := errors.Join(f.insertOverADay(ctx, c.backlog), db.analyze(ctx)); err != nil {
		return nil, err
	}
	o, err := ops.New(f.producer).WithPolicies(map[string]backoff.Policy{"": tomorrow})
	if err != nil {
		return nil, err
	}
	var took []float64
	for range profileReads {
		begin := time.Now()
		p, err := o.Profile(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin).Seconds())
		if p.Tasks != int64(c.backlog) {
			return nil, fmt.Errorf("the profile has %d tasks of %d", p.Tasks, c.backlog)
		}
	}
	slices.Sort(took)
	return values{"": took[profileReads/2], "profile_s_max": took[profileReads-1]}, nil
}

// insertOverADay stores n tasks that wait after failures, which happened at any time of the
// last day.
func (f *falldueSubject) insertOverADay(ctx context.Context, n int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, fmt.Sprintf(`insert into falldue_tasks (queue, kind, attempts, fence, updated_at, created_at, first_attempted_at, attempted_at, payload)
		select 'default', 'waiting.' || (i %%%% %[1]d), 1 + i %%%% %[2]d, 1 + i %%%% %[2]d, %%[4]s, %%[4]s, %%[4]s, %%[4]s, '%[3]s'`, profileKinds, profileLevels, encoded))
}
