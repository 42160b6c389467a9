package main

import (
	"context"
	"errors"
	"time"
)

// idle counts the statements of an idle worker while many tasks wait until
// tomorrow.
func idle(ctx context.Context, c *config, db database, s subject) (values, error) {
	if _, ok := s.(*riverSQLite); ok {
		return nil, errors.ErrUnsupported // its statements are another process's
	}
	if err := s.insertWaiting(ctx, c.backlog); err != nil {
		return nil, err
	}
	if err := db.analyze(ctx); err != nil {
		return nil, err
	}
	perMinute, err := idleStatements(ctx, c, db, s)
	return values{"": perMinute}, err
}

// idleQueues counts the statements of an idle worker of many queues.
func idleQueues(ctx context.Context, c *config, db database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok || !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	one, err := openFalldue(tuned)(ctx, db, settings{counts: true})
	if err != nil {
		return nil, err
	}
	defer one.close()
	if err := insertSeries(ctx, f.pools[0], f.engine, 500, `insert into falldue_tasks (queue, kind, attempts, updated_at, created_at, payload)
		select 'queue.' || (i - 1), 'bench', 1, %[1]s, %[1]s, '`+encoded+`'`); err != nil {
		return nil, err
	}
	if err := db.analyze(ctx); err != nil {
		return nil, err
	}
	alone, err := idleStatements(ctx, c, db, one)
	if err != nil {
		return nil, err
	}
	many, err := idleStatements(ctx, c, db, s)
	return values{"": many / 60, "idle_1_queue_per_s": alone / 60}, err
}

// idleStatements returns how many statements a worker without tasks makes in a minute.
func idleStatements(ctx context.Context, c *config, db database, s subject) (perMinute float64, err error) {
	stop, err := s.work(ctx, func() error { return errors.New("an idle worker ran a task") })
	if err != nil {
		return 0, err
	}
	perMinute, err = countStatements(ctx, c, db)
	return perMinute, errors.Join(err, stop())
}

// countStatements returns how many statements a worker that runs makes in a minute, after a silence
// in which it finds out what waits.
func countStatements(ctx context.Context, c *config, db database) (perMinute float64, err error) {
	count := func(wait time.Duration) (n int, err error) {
		select {
		case <-time.After(wait):
			return db.statements(ctx)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	window := 10 * c.while
	before, err := count(c.silence) // the worker has started, and the server has counted that
	if err != nil {
		return 0, err
	}
	after, err := count(window)
	return float64(after-before) / window.Minutes(), err
}

// statements returns how many statements the server has run. On PostgreSQL it
// counts the transactions in this database, one per statement of an idle worker.
// On MySQL and MariaDB it counts the statements of the whole server, which nobody
// else may use during the measure. On SQLite the driver counts those of this process.
func (db database) statements(ctx context.Context) (n int, err error) {
	if db.server.engine == sqlite {
		return int(countedStatements.Load()), nil
	}
	query := "select xact_commit + xact_rollback from pg_stat_database where datname = '" + db.name + "'"
	if db.server.engine != postgres {
		query = "select variable_value - 1 from performance_schema.global_status where variable_name = 'Questions'"
	}
	if db.server.engine == mariaDB {
		query = "select variable_value - 1 from information_schema.global_status where variable_name = 'Questions'"
	}
	err = db.server.admin.GetContext(ctx, &n, query)
	return n, err
}
