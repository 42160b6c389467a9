package main

import (
	"context"
	"errors"
)

// laneInserter is a subject that claims by lanes.
type laneInserter interface {
	// insertLanes stores n due tasks of 20,000 lanes.
	insertLanes(ctx context.Context, n int) error
}

// drainLanes measures how fast one worker processes the tasks of many lanes.
func drainLanes(ctx context.Context, c *config, db database, s subject) (values, error) {
	l, ok := s.(laneInserter)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := l.insertLanes(ctx, c.tasks); err != nil {
		return nil, err
	}
	if err := db.analyze(ctx); err != nil {
		return nil, err
	}
	took, _, _, err := drain(ctx, c, s, c.tasks, nil)
	return values{"": perSecond(c.tasks, took)}, err
}

func (f *falldueSubject) insertLanes(ctx context.Context, n int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, `insert into falldue_tasks (queue, kind, priority, updated_at, created_at, payload)
		select 'default', 'bench', i %% 20000 - 10000, %[2]s, %[1]s, '`+encoded+`'`)
}
