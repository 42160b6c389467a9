package main

import (
	"context"
	"errors"
	"fmt"
)

// laneInserter is a subject that claims by lanes.
type laneInserter interface {
	// insertLanes stores n due tasks of so many lanes: up to 65,535.
	insertLanes(ctx context.Context, n, lanes int) error
}

// drainLanes measures how fast one worker processes the tasks of many lanes.
func drainLanes(ctx context.Context, c *config, db database, s subject) (values, error) {
	l, ok := s.(laneInserter)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := l.insertLanes(ctx, c.tasks, 20_000); err != nil {
		return nil, err
	}
	if err := db.analyze(ctx); err != nil {
		return nil, err
	}
	took, _, _, err := drain(ctx, c, s, c.tasks, nil)
	return values{"": perSecond(c.tasks, took)}, err
}

func (f *falldueSubject) insertLanes(ctx context.Context, n, lanes int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, fmt.Sprintf(`insert into falldue_tasks (queue, kind, priority, updated_at, created_at, payload)
		select 'default', 'bench', i %%%% %d - %d, %%[2]s, %%[1]s, '%s'`, lanes, lanes/2, encoded))
}
