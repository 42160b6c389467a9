package main

import (
	"context"
	"errors"
	"time"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

// historyWriters is how many other workers write the history of their runs in the measure drain_with_history. Each
// writes within ten seconds after a minute, so this is how many write in that time.
const historyWriters = 100

// drainWithHistory measures a drain while other workers write the history of their runs.
func drainWithHistory(ctx context.Context, c *config, db database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok || !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	stop := f.writeHistory(ctx)
	v, err := drainOf(1, 0, nil)(ctx, c, db, s)
	return v, errors.Join(err, stop())
}

// writeHistory writes the history of other workers until the returned function is called.
func (f *falldueSubject) writeHistory(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		table, sums := hooks.StoreOf(f.producer), []store.Sums{{Queue: "default", Kind: "bench", Started: 1, Done: 1}}
		every := time.NewTicker(10 * time.Second / historyWriters)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				failed <- nil
				return
			case <-every.C:
				if err := table.AddMinutes(ctx, sums, 0); err != nil && ctx.Err() == nil {
					failed <- err
					return
				}
			}
		}
	}()
	return func() error { cancel(); return <-failed }
}
