package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// localInserter is a subject whose worker knows at once of tasks that its own
// process enqueues.
type localInserter interface {
	insertLocally(ctx context.Context) error
}

// pickup measures the time from the commit of a task to the start of its handler,
// in an otherwise idle worker.
func pickup(local bool) func(context.Context, *config, database, subject) (values, error) {
	return func(ctx context.Context, c *config, _ database, s subject) (values, error) {
		insert, prefix := s.insertOne, "pickup"
		if local {
			l, ok := s.(localInserter)
			if !ok {
				return nil, errors.ErrUnsupported
			}
			insert, prefix = l.insertLocally, "pickup_local"
		}
		started := make(chan time.Time, 1)
		stop, err := s.work(ctx, func() error { started <- time.Now(); return nil })
		if err != nil {
			return nil, err
		}
		waits, err := measureWaits(ctx, c, insert, started)
		if err := errors.Join(err, stop()); err != nil {
			return nil, err
		}
		slices.Sort(waits)
		at := func(share float64) float64 {
			return waits[int(share*float64(len(waits)-1)+0.5)].Seconds() * 1000
		}
		return values{"": at(0.5), prefix + "_p99_ms": at(0.99)}, nil
	}
}

// measureWaits stores tasks one after the other, each a random time after the last
// was handled, so that they arrive at all phases of the poll interval. It returns
// the time that each task waited for its handler.
func measureWaits(ctx context.Context, c *config, insert func(context.Context) error, started <-chan time.Time) ([]time.Duration, error) {
	const warmUp = 5 // tasks that are not counted: connections open, statements are prepared
	var list []time.Duration
	var last time.Duration
	end := time.Now().Add(4 * c.while)
	for i := 0; i < warmUp+20 || time.Now().Before(end); i++ {
		time.Sleep(5*time.Millisecond + rand.N(50*time.Millisecond+2*last))
		wait, err := c.awaitTask(ctx, insert, started)
		if err != nil {
			return nil, err
		}
		if last = wait; i >= warmUp {
			list = append(list, wait)
		}
	}
	return list, nil
}

// firstTask measures the time from the commit of a task to the start of its handler, each
// after a silence.
func firstTask(ctx context.Context, c *config, _ database, s subject) (values, error) {
	const tasks = 5
	started := make(chan time.Time, 1)
	stop, err := s.work(ctx, func() error { started <- time.Now(); return nil })
	if err != nil {
		return nil, err
	}
	var waits []time.Duration
	for range tasks {
		time.Sleep(c.silence + rand.N(time.Second)) // at any phase of the poll interval
		wait, err := c.awaitTask(ctx, s.insertOne, started)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		waits = append(waits, wait)
	}
	slices.Sort(waits)
	return values{"": waits[tasks/2].Seconds() * 1000, "first_task_ms_max": waits[tasks-1].Seconds() * 1000}, stop()
}

// awaitTask stores a task, and returns how long after that its handler started.
func (c *config) awaitTask(ctx context.Context, insert func(context.Context) error, started <-chan time.Time) (time.Duration, error) {
	if err := insert(ctx); err != nil {
		return 0, err
	}
	committed := time.Now()
	select {
	case at := <-started:
		return max(0, at.Sub(committed)), nil // a handler may start before the commit has returned
	case <-time.After(c.patience):
		return 0, fmt.Errorf("no handler started within %v", c.patience)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
