package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// rawMySQL is raw on MySQL and MariaDB. Neither has UPDATE … RETURNING, so a claim
// is a short transaction: select and lock, update, commit.
type rawMySQL struct {
	engine    string
	doneTasks retention
	pool      *sqlx.DB
}

func openRawMySQL(ctx context.Context, db database, s settings) (subject, error) {
	if s.notify {
		return nil, errors.ErrUnsupported // nothing notifies a worker of a task
	}
	pool, err := db.open()
	if err != nil {
		return nil, err
	}
	for _, stmt := range []string{
		`create table if not exists raw (id bigint not null auto_increment primary key, kind varchar(100) not null, state tinyint not null default 0,
			attempts int not null default 0, run_at datetime(6) not null default (utc_timestamp(6)), claimed_by bigint, last_error text, payload longtext not null,
			index raw_due (state, run_at))`,
		`create table if not exists raw_errors (id bigint not null, attempt int not null, at datetime(6) not null default (utc_timestamp(6)), error text not null, primary key (id, attempt))`,
	} {
		if _, err := pool.ExecContext(ctx, stmt); err != nil {
			_ = pool.Close()
			return nil, err
		}
	}
	return &raw{rawStatements: &rawMySQL{db.server.engine, s.done, pool}, pool: pool, loops: cmp.Or(s.few, rawLoops)}, nil
}

func (r *rawMySQL) insert(ctx context.Context, n int) error {
	return storeParts(ctx, n, rawBatch, producers, func(ctx context.Context, n int) error {
		_, err := r.pool.ExecContext(ctx, "insert into raw (kind, payload) values "+valuesOf("('bench', '"+encoded+"')", n))
		return err
	})
}

func (r *rawMySQL) copyIn(context.Context, int) error { return errors.ErrUnsupported }

func (r *rawMySQL) insertOne(ctx context.Context) error {
	_, err := r.pool.ExecContext(ctx, "insert into raw (kind, payload) values ('bench', '"+encoded+"')")
	return err
}

func (r *rawMySQL) insertWaiting(ctx context.Context, n int) error {
	return insertSeries(ctx, r.pool, r.engine, n, `insert into raw (kind, attempts, run_at, payload)
		select concat('waiting.', i %% 8), 1 + i %% 25, %[3]s, '`+encoded+`'`)
}

func (r *rawMySQL) listen(context.Context) (<-chan struct{}, error) { return nil, nil }

// inTx runs fn in a transaction in which a locking read locks the rows that it
// returns, and not the gaps between them.
func (r *rawMySQL) inTx(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := r.pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // err says what went wrong
		return err
	}
	return tx.Commit()
}

func (r *rawMySQL) claim(ctx context.Context, name int64) (tasks []rawTask, err error) {
	err = r.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, fmt.Sprintf("select id, attempts + 1, payload from raw where state = 0 and run_at <= utc_timestamp(6) order by run_at limit %d for update skip locked", rawBatch))
		if tasks, err = scanTasks(rows, err); err != nil || len(tasks) == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("update raw set attempts = attempts + 1, run_at = utc_timestamp(6) + interval 1 minute, claimed_by = %d where id in %s", name, idList(tasks)))
		return err
	})
	return tasks, err
}

func (r *rawMySQL) done(ctx context.Context, name int64, tasks []rawTask) (n int64, err error) {
	end := "delete from raw where id in %s and claimed_by = %d"
	if r.doneTasks == kept {
		end = "update raw set state = 1, claimed_by = null where id in %s and claimed_by = %d"
	}
	err = r.inTx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, fmt.Sprintf(end, idList(tasks), name))
		n, err = affected(res, err)
		return err
	})
	return n, err
}

func (r *rawMySQL) failed(ctx context.Context, name int64, tasks []rawTask) (n int64, err error) {
	err = r.inTx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, fmt.Sprintf("update raw set run_at = utc_timestamp(6) + interval 1 day, claimed_by = null, last_error = '%s' where id in %s and claimed_by = %d", errHandler, idList(tasks), name))
		if n, err = affected(res, err); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("insert into raw_errors (id, attempt, error) select id, attempts, last_error from raw where id in %s", idList(tasks)))
		return err
	})
	return n, err
}
