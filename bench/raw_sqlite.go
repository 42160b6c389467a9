package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// rawSQLite is raw on SQLite: one loop on one connection, because SQLite has one
// writer at a time.
type rawSQLite struct {
	doneTasks retention
	pool      *sqlx.DB
}

func openRawSQLite(ctx context.Context, db database, s settings) (subject, error) {
	if s.notify {
		return nil, errors.ErrUnsupported // nothing notifies a worker of a task
	}
	pool, err := db.open()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	for _, stmt := range []string{
		`create table if not exists raw (id integer primary key, kind text not null, state integer not null default 0,
			attempts integer not null default 0, run_at integer not null, claimed_by integer, last_error text, payload text not null)`,
		`create index if not exists raw_due on raw (run_at) where state = 0`,
		`create table if not exists raw_errors (id integer not null, attempt integer not null, at integer not null, error text not null, primary key (id, attempt)) without rowid`,
	} {
		if _, err := pool.ExecContext(ctx, stmt); err != nil {
			_ = pool.Close()
			return nil, err
		}
	}
	return &raw{rawStatements: &rawSQLite{s.done, pool}, pool: pool, loops: cmp.Or(s.few, 1)}, nil
}

func (r *rawSQLite) insert(ctx context.Context, n int) error {
	return storeParts(ctx, n, rawBatch, 1, func(ctx context.Context, n int) error {
		_, err := r.pool.ExecContext(ctx, "insert into raw (kind, run_at, payload) values "+valuesOf("('bench', unixepoch() * 1000000, '"+encoded+"')", n))
		return err
	})
}

func (r *rawSQLite) copyIn(context.Context, int) error { return errors.ErrUnsupported }

func (r *rawSQLite) insertOne(ctx context.Context) error {
	_, err := r.pool.ExecContext(ctx, "insert into raw (kind, run_at, payload) values ('bench', unixepoch() * 1000000, ?)", encoded)
	return err
}

func (r *rawSQLite) insertWaiting(ctx context.Context, n int) error {
	return insertSeries(ctx, r.pool, sqlite, n, `insert into raw (kind, attempts, run_at, payload)
		select 'waiting.' || (i %% 8), 1 + i %% 25, %[3]s, '`+encoded+`'`)
}

func (r *rawSQLite) listen(context.Context) (<-chan struct{}, error) { return nil, nil }

func (r *rawSQLite) claim(ctx context.Context, name int64) ([]rawTask, error) {
	rows, err := r.pool.QueryContext(ctx, `update raw set attempts = attempts + 1, run_at = (unixepoch() + 60) * 1000000, claimed_by = ?
		where id in (select id from raw where state = 0 and run_at <= unixepoch() * 1000000 order by run_at limit ?) returning id, attempts, payload`, name, rawBatch)
	return scanTasks(rows, err)
}

func (r *rawSQLite) done(ctx context.Context, name int64, tasks []rawTask) (int64, error) {
	end := "delete from raw where id in %s and claimed_by = %d"
	if r.doneTasks == kept {
		end = "update raw set state = 1, claimed_by = null where id in %s and claimed_by = %d"
	}
	res, err := r.pool.ExecContext(ctx, fmt.Sprintf(end, idList(tasks), name))
	return affected(res, err)
}

func (r *rawSQLite) failed(ctx context.Context, name int64, tasks []rawTask) (n int64, err error) {
	tx, err := r.pool.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // nothing to undo after the commit
	res, err := tx.ExecContext(ctx, fmt.Sprintf("update raw set run_at = (unixepoch() + 86400) * 1000000, claimed_by = null, last_error = '%s' where id in %s and claimed_by = %d", errHandler, idList(tasks), name))
	if n, err = affected(res, err); err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("insert into raw_errors (id, attempt, at, error) select id, attempts, unixepoch() * 1000000, last_error from raw where id in %s", idList(tasks))); err != nil {
		return 0, err
	}
	return n, tx.Commit()
}
