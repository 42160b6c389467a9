package main

import (
	"context"
	"errors"
	"fmt"
)

// kindInserter is a subject with many kinds.
type kindInserter interface {
	// insertKinds stores n due tasks, one of each kind in turns.
	insertKinds(ctx context.Context, n, kinds int) error
}

// drainKinds measures how fast one worker processes the tasks of so many kinds.
func drainKinds(kinds int) func(ctx context.Context, c *config, db database, s subject) (values, error) {
	return func(ctx context.Context, c *config, db database, s subject) (values, error) {
		k, ok := s.(kindInserter)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		if err := k.insertKinds(ctx, c.tasks, kinds); err != nil {
			return nil, err
		}
		if err := db.analyze(ctx); err != nil {
			return nil, err
		}
		took, _, _, err := drain(ctx, c, s, c.tasks, nil)
		return values{"": perSecond(c.tasks, took)}, err
	}
}

func (f *falldueSubject) insertKinds(ctx context.Context, n, kinds int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, fmt.Sprintf(`insert into falldue_tasks (queue, kind, updated_at, created_at, payload)
		select 'default', 'kind.' || (i %%%% %d), %%[2]s, %%[1]s, '%s'`, kinds, encoded))
}
