package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue"
)

// pickupBesideSaturated measures how soon a worker starts tasks while a tenth of config.backlog
// sequences wait for their first tasks, which have failed and are due tomorrow, and how many
// statements it makes when nothing can run.
func pickupBesideSaturated(ctx context.Context, c *config, db database, s subject) (v values, err error) {
	f, ok := s.(*falldueSubject)
	if !ok || !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	started := make(chan time.Time, 2*(warmUp+fewestWaits+4*c.while/shortestGap+1)) // no handler waits
	stop, err := s.work(ctx, func() error { started <- time.Now(); return nil })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	keys := 0
	insert := func(ctx context.Context) error { // in turns one without a key and one of a new key
		keys++
		if keys%2 == 0 {
			return f.insertOne(ctx)
		}
		_, err := f.kind.Enqueue(ctx, f.producer, sample, falldue.EnqueueOptions{Key: fmt.Sprint("new:", keys)})
		return err
	}
	median := func() (float64, error) {
		waits, err := measureWaits(ctx, c, insert, started)
		if err != nil {
			return 0, err
		}
		return waits[len(waits)/2].Seconds() * 1000, nil
	}
	alone, err := median()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.insertSequences(ctx, c.backlog/10), db.analyze(ctx)); err != nil {
		return nil, err
	}
	idle, err := countStatements(ctx, c, db)
	if err != nil {
		return nil, err
	}
	beside, err := median()
	return values{"": beside, "saturated_alone_ms": alone, "saturated_idle_per_s": idle / 60}, err
}

// insertSequences stores n sequences of two tasks: the first has failed and is due tomorrow, the
// other one is due.
func (f *falldueSubject) insertSequences(ctx context.Context, n int) error {
	insert := func(columns, row string) error {
		return insertSeries(ctx, f.pools[0], f.engine, n, `insert into falldue_tasks (queue, kind, task_key, `+columns+`created_at, payload)
			select 'default', 'bench', 'customer:' || i, `+row+`%[1]s, '`+encoded+`'`)
	}
	if err := insert("attempts, fence, updated_at, ", "1, 1, %[1]s, "); err != nil {
		return err
	}
	name := "'kind bench order of ' || task_key"
	if f.engine != postgres && f.engine != sqlite {
		name = "concat('kind bench order of ', task_key)"
	}
	if _, err := f.pools[0].ExecContext(ctx, `insert into falldue_permits (name, n, task_id, fence, taken_until)
		select `+name+`, 0, id, 1, updated_at from falldue_tasks where attempts = 1 and task_key <> ''`); err != nil {
		return err
	}
	return insert("updated_at, ", "%[2]s, ")
}
