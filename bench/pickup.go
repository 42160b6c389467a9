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
		started := make(chan time.Time, warmUp+fewestWaits+4*c.while/shortestGap+1) // no handler waits
		stop, err := s.work(ctx, func() error { started <- time.Now(); return nil })
		if err != nil {
			return nil, err
		}
		waits, err := measureWaits(ctx, c, insert, started)
		if err := errors.Join(err, stop()); err != nil {
			return nil, err
		}
		at := func(share float64) float64 {
			return waits[int(share*float64(len(waits)-1)+0.5)].Seconds() * 1000
		}
		return values{"": at(0.5), prefix + "_p99_ms": at(0.99)}, nil
	}
}

const (
	// shortestGap and longestGap are between the begins of two enqueues of a pickup.
	shortestGap, longestGap = 50 * time.Millisecond, 100 * time.Millisecond
	// warmUp is how many tasks are not counted: connections open, statements are prepared.
	warmUp = 5
	// fewestWaits is the least number of tasks that are counted.
	fewestWaits = 20
)

// measureWaits stores tasks one by one, each 50 to 100 ms after the one before, whether or
// not that has been handled, so that they arrive at all phases of the poll interval. It
// returns the times that tasks waited for their handlers, from the shortest to the longest.
func measureWaits(ctx context.Context, c *config, insert func(context.Context) error, started <-chan time.Time) ([]time.Duration, error) {
	var committed, handled []time.Time
	end := time.Now().Add(4 * c.while)
	next := time.NewTimer(0)
	defer next.Stop()
	for len(committed) < warmUp+fewestWaits || time.Now().Before(end) {
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		next.Reset(shortestGap + rand.N(longestGap-shortestGap))
		if err := insert(ctx); err != nil {
			return nil, err
		}
		committed = append(committed, time.Now())
	}
	for patience := time.After(c.patience); len(handled) < len(committed); {
		select {
		case at := <-started:
			handled = append(handled, at)
		case <-patience:
			return nil, fmt.Errorf("%d of %d handlers started within %v", len(handled), len(committed), c.patience)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return waitsOf(committed, handled, warmUp), nil
}

// waitsOf returns how long tasks waited from their commits to their starts, shortest first. It leaves out
// the first tasks, as many as without says, and assumes that tasks start in the order of their commits.
func waitsOf(committed, started []time.Time, without int) (list []time.Duration) {
	slices.SortFunc(committed, time.Time.Compare)
	slices.SortFunc(started, time.Time.Compare)
	for i := without; i < len(started); i++ {
		list = append(list, max(0, started[i].Sub(committed[i]))) // a handler may start before the commit has returned
	}
	slices.Sort(list)
	return list
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
