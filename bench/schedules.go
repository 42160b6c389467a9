package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// Schedules that tick at the same moments, the time between two ticks, and how many are
// measured.
const (
	scheduleCount = 1000
	scheduleEvery = 10 * time.Second
	scheduleTicks = 3
)

// lateSchedules measures how long after a tick the last of its tasks is stored.
func lateSchedules(ctx context.Context, c *config, _ database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	list := make([]periodic.Schedule, scheduleCount)
	for i := range list {
		list[i] = periodic.Schedule{Name: fmt.Sprint("schedule.", i), Spec: fmt.Sprint("@every ", scheduleEvery), Task: f.kind.Params(sample)}
	}
	schedules, err := periodic.New(f.producer, list...)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- schedules.Run(running) }()
	stored, err := c.storedTasks(ctx, f, scheduleCount*scheduleTicks)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return nil, err
	}
	rows, err := periodic.List(ctx, f.producer)
	if err != nil {
		return nil, err
	}
	next := rows[0].Next // all tick together
	late := make([]time.Duration, 0, scheduleTicks)
	for tick := range slices.Chunk(stored, scheduleCount) {
		for next.After(tick[0]) {
			next = next.Add(-scheduleEvery)
		}
		for next.Add(scheduleEvery).Before(tick[0]) {
			next = next.Add(scheduleEvery)
		}
		late = append(late, tick[len(tick)-1].Sub(next))
	}
	slices.Sort(late)
	return values{"": late[len(late)/2].Seconds() * 1000, "schedules_late_max_ms": late[len(late)-1].Seconds() * 1000}, nil
}

// storedTasks waits for n tasks, and returns when the first n were stored.
func (c *config) storedTasks(ctx context.Context, f *falldueSubject, n int) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		page, err := ops.New(f.worker).Tasks(ctx, ops.Filter{}, ops.ListOptions{Limit: n})
		if err != nil {
			return nil, err
		}
		if len(page.Tasks) >= n {
			stored := make([]time.Time, n)
			for i, one := range page.Tasks[:n] {
				stored[i] = one.CreatedAt
			}
			slices.SortFunc(stored, time.Time.Compare)
			return stored, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d tasks stored: %w", len(page.Tasks), n, ctx.Err())
		case <-look.C:
		}
	}
}
