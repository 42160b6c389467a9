package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// steadyRate is how many tasks per second come in the measures steady and
	// steady_snapshot, from steadyClients clients.
	steadyRate, steadyClients = 1200, 16
	// snapshots is how many overlapping transactions are open in steady_snapshot.
	snapshots = 3
)

// steady measures how long tasks wait that come one by one at a steady rate, on
// PostgreSQL from another process, and elsewhere from the worker's own.
func steady(name string, snapshot bool) func(context.Context, *config, database, subject) (values, error) {
	return func(ctx context.Context, c *config, db database, s subject) (values, error) {
		insert := s.insertOne
		if db.server.engine != postgres {
			l, ok := s.(localInserter)
			if !ok {
				return nil, errors.ErrUnsupported
			}
			insert = l.insertLocally
		}
		var mu sync.Mutex
		var committed, started []time.Time
		stop, err := s.work(ctx, func() error {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, time.Now())
			return nil
		})
		if err != nil {
			return nil, err
		}
		length := 20 * c.while
		ctx, cancel := context.WithTimeout(ctx, length)
		defer cancel()
		if snapshot {
			release, err := holdSnapshots(ctx, db, length)
			if err != nil {
				return nil, errors.Join(err, stop())
			}
			defer release()
		}
		err = loops(ctx, steadyClients, func(ctx context.Context) error {
			tick := time.NewTicker(steadyClients * time.Second / steadyRate)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
				if err := insert(context.WithoutCancel(ctx)); err != nil {
					return err
				}
				mu.Lock()
				committed = append(committed, time.Now())
				mu.Unlock()
			}
		})
		// The last tasks still wait.
		for end := time.Now().Add(c.patience); err == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			all := len(started) >= len(committed)
			mu.Unlock()
			if all {
				break
			}
		}
		if err := errors.Join(err, stop()); err != nil {
			return nil, err
		}
		if len(started) != len(committed) {
			return nil, fmt.Errorf("%d of %d tasks started", len(started), len(committed))
		}
		return waits(name, committed, started), nil
	}
}

// waits returns the percentiles of the time from the commits of tasks to their starts,
// without the first tenth.
func waits(name string, committed, started []time.Time) values {
	list := waitsOf(committed, started, len(started)/10)
	at := func(share float64) float64 { return list[int(share*float64(len(list)-1))].Seconds() * 1000 }
	return values{"": at(0.5), name + "_p99_ms": at(0.99)}
}

// holdSnapshots keeps overlapping transactions open that each hold a snapshot for
// length, until ctx ends. When release returns, all have ended.
func holdSnapshots(ctx context.Context, db database, length time.Duration) (release func(), err error) {
	first, err := db.holdSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	held := []func(){first}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(length / snapshots)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			next, err := db.holdSnapshot(ctx)
			if err != nil {
				return // ctx has ended
			}
			if held = append(held, next); len(held) > snapshots {
				held[0]()
				held = held[1:]
			}
		}
	}()
	return func() {
		<-done
		for _, release := range held {
			release()
		}
	}, nil
}
