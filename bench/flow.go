package main

import (
	"context"
	"errors"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

// drainFlow measures how fast one worker processes config.tasks tasks that are the members
// of one batch, and the task that runs after them.
func drainFlow(ctx context.Context, c *config, db database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	members := make([]falldue.EnqueueParams, c.tasks)
	for i := range members {
		members[i] = f.kind.Params(sample)
	}
	if _, err := flow.Batch(members...).Then(f.kind.Params(sample)).Enqueue(ctx, f.producer); err != nil {
		return nil, err
	}
	if err := db.analyze(ctx); err != nil {
		return nil, err
	}
	took, _, _, err := drain(ctx, c, s, c.tasks+1, nil)
	return values{"": perSecond(c.tasks+1, took)}, err
}
