package main

import (
	"context"
	"errors"
	"time"

	"github.com/falldue/falldue"
)

// counts measures Queue.CountsAbout and Queue.Counts while config.backlog tasks wait.
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
	about, err := countTime(ctx, f.producer.CountsAbout) // once: a queue remembers them
	if err != nil {
		return nil, err
	}
	exact, err := countTime(ctx, f.producer.Counts)
	return values{"": about, "counts_ms": exact}, err
}

// countTime returns how long a count takes, in milliseconds.
func countTime(ctx context.Context, count func(context.Context) ([]falldue.Count, error)) (float64, error) {
	begin := time.Now()
	_, err := count(ctx)
	return time.Since(begin).Seconds() * 1000, err
}
