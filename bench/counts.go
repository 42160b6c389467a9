package main

import (
	"context"
	"errors"
	"time"

	"github.com/falldue/falldue/ops"
)

// counts measures ops.Ops.EstimateCounts and Counts while config.backlog tasks wait.
func counts(ctx context.Context, c *config, db database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := s.insertWaiting(ctx, c.backlog); err != nil {
		return nil, err
	}
	if err := db.analyze(ctx); err != nil {
		return nil, err
	}
	o := ops.New(f.producer)
	estimated, err := countTime(ctx, o.EstimateCounts) // once: an Ops remembers them
	if err != nil {
		return nil, err
	}
	exact, err := countTime(ctx, o.Counts)
	return values{"": estimated, "counts_ms": exact}, err
}

// countTime returns how long a count takes, in milliseconds.
func countTime(ctx context.Context, count func(context.Context) ([]ops.Count, error)) (float64, error) {
	begin := time.Now()
	_, err := count(ctx)
	return time.Since(begin).Seconds() * 1000, err
}
