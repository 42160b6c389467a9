package main

import (
	"context"
	"errors"
)

// keyInserter is a subject with a limit for each key.
type keyInserter interface {
	// insertKeys stores n due tasks of 1,000 keys.
	insertKeys(ctx context.Context, n int) error
	// insertSaturated stores n due tasks of one key whose limit admits none, since others run.
	insertSaturated(ctx context.Context, n int) error
}

// drainKeys measures how fast one worker processes the tasks of many keys, of each of which
// two may run at once, with saturated times config.backlog tasks of a saturated key.
func drainKeys(saturated int) func(ctx context.Context, c *config, db database, s subject) (values, error) {
	return func(ctx context.Context, c *config, db database, s subject) (values, error) {
		k, ok := s.(keyInserter)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		if saturated > 0 {
			if err := k.insertSaturated(ctx, saturated*c.backlog); err != nil {
				return nil, err
			}
		}
		if err := k.insertKeys(ctx, c.tasks); err != nil {
			return nil, err
		}
		if err := db.analyze(ctx); err != nil {
			return nil, err
		}
		took, _, _, err := drain(ctx, c, s, c.tasks, nil)
		return values{"": perSecond(c.tasks, took)}, err
	}
}

// drainBesideSaturated measures how fast one worker processes tasks without a key while
// config.backlog tasks of a saturated key wait.
func drainBesideSaturated(ctx context.Context, c *config, db database, s subject) (values, error) {
	k, ok := s.(keyInserter)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := k.insertSaturated(ctx, c.backlog); err != nil {
		return nil, err
	}
	return drainOf(1, 0, nil)(ctx, c, db, s)
}

func (f *falldueSubject) insertKeys(ctx context.Context, n int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, `insert into falldue_tasks (queue, kind, task_key, updated_at, created_at, payload)
		select 'default', 'bench', 'customer:' || (i %% 1000), %[2]s, %[1]s, '`+encoded+`'`)
}

func (f *falldueSubject) insertSaturated(ctx context.Context, n int) error {
	for _, insert := range []string{
		`insert into falldue_tasks (queue, kind, task_key, attempts, fence, claimed_by, updated_at, created_at, payload)
		select 'default', 'bench', 'saturated', 1, 1, 'another', %[3]s, %[1]s, '` + encoded + `'`,
		`insert into falldue_permits (name, n, task_id, fence, taken_until)
		select 'kind bench running of saturated', i - 1, (select max(id) from falldue_tasks), 1, %[1]s`,
	} {
		if err := insertSeries(ctx, f.pools[0], f.engine, perKey, insert); err != nil {
			return err
		}
	}
	return insertSeries(ctx, f.pools[0], f.engine, n, `insert into falldue_tasks (queue, kind, task_key, updated_at, created_at, payload)
		select 'default', 'bench', 'saturated', %[2]s, %[1]s, '`+encoded+`'`)
}

// perKey is how many tasks of a key may run at once.
const perKey = 2
