package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/falldue/falldue/promfalldue"
	"github.com/falldue/falldue/signals"
)

// openMetered opens falldue with the metrics of promfalldue, as two processes would have them. No Prometheus scrapes
// them: a scrape costs a computation in 15 seconds at most, however many tasks run.
func openMetered(ctx context.Context, db database, s settings) (subject, error) {
	worker, err := promfalldue.New(prometheus.NewRegistry(), promfalldue.Config{})
	if err != nil {
		return nil, err
	}
	producer, err := promfalldue.New(prometheus.NewRegistry(), promfalldue.Config{})
	if err != nil {
		return nil, err
	}
	s.hooks = signals.JoinHooks(s.hooks, worker.Hooks())
	opened, err := named(meteredName)(openFalldue(tuned)(ctx, db, s))
	if err != nil {
		return nil, err
	}
	f := opened.(*falldueSubject) // openFalldue opens no other
	worker.Observe(f.worker)
	producer.Observe(f.producer)
	return f, nil
}
