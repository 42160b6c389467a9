package main

import (
	"cmp"
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// rawPostgres is raw on PostgreSQL: prepared statements of lib/pq.
type rawPostgres struct {
	dsn      string
	settings settings
	pool     *sqlx.DB

	many, one, take, end, fail *sqlx.Stmt
}

func openRawPostgres(ctx context.Context, db database, s settings) (_ subject, err error) {
	r := &rawPostgres{dsn: db.dsn, settings: s}
	if r.pool, err = db.open(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = r.pool.Close()
		}
	}()
	for _, stmt := range []string{
		`create table if not exists raw (id bigint generated always as identity primary key, kind text not null, state text not null default 'open',
			attempts int not null default 0, run_at timestamptz not null default now(), claimed_by bigint, last_error text, payload json not null)
			with (fillfactor = 80)`,
		`create index if not exists raw_due on raw (run_at) where state = 'open'`,
		`create table if not exists raw_errors (id bigint not null, attempt int not null, at timestamptz not null default now(), error text not null, primary key (id, attempt))`,
	} {
		if _, err := r.pool.ExecContext(ctx, stmt); err != nil {
			return nil, err
		}
	}
	end := `delete from raw using unnest($1::bigint[]) as s(i) where id = i and claimed_by = $2`
	if s.done == kept {
		end = `update raw set state = 'done', claimed_by = null from unnest($1::bigint[]) as s(i) where id = i and claimed_by = $2`
	}
	for _, p := range []struct {
		stmt **sqlx.Stmt
		text string
	}{
		{&r.many, `insert into raw (kind, payload) select 'bench', p::json from unnest($1::text[]) as s(p)`},
		{&r.one, `insert into raw (kind, payload) values ('bench', $1)`},
		{&r.take, `update raw set attempts = attempts + 1, run_at = now() + interval '1 minute', claimed_by = $1
			where id = any(array(select id from raw where state = 'open' and run_at <= now() order by run_at limit $2 for update skip locked))
			returning id, attempts, payload`},
		{&r.end, end},
		{&r.fail, `with e as (insert into raw_errors (id, attempt, error) select i, n, $4 from unnest($1::bigint[], $3::int[]) as s(i, n))
			update raw set run_at = now() + interval '1 day', claimed_by = null, last_error = $4 from unnest($1::bigint[]) as s(i) where id = i and claimed_by = $2`},
	} {
		if *p.stmt, err = r.pool.PreparexContext(ctx, p.text); err != nil {
			return nil, err
		}
	}
	return &raw{rawStatements: r, pool: r.pool, loops: cmp.Or(s.few, rawLoops)}, nil
}

func (r *rawPostgres) insert(ctx context.Context, n int) error {
	return storeParts(ctx, n, rawBatch, producers, func(ctx context.Context, n int) error {
		_, err := r.many.ExecContext(ctx, pq.StringArray(payloads(n)))
		return err
	})
}

func (r *rawPostgres) copyIn(ctx context.Context, n int) error {
	return storeParts(ctx, n, perCopy, producers, func(ctx context.Context, n int) error {
		tx, err := r.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing to undo after the commit
		in, err := tx.PrepareContext(ctx, "copy raw (kind, payload) from stdin")
		if err != nil {
			return err
		}
		for range n {
			if _, err := in.ExecContext(ctx, "bench", encoded); err != nil {
				return err
			}
		}
		if err := in.Close(); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func (r *rawPostgres) insertOne(ctx context.Context) error {
	if !r.settings.notify {
		_, err := r.one.ExecContext(ctx, encoded)
		return err
	}
	_, err := r.pool.ExecContext(ctx, `with i as (insert into raw (kind, payload) values ('bench', $1)) select pg_notify('raw', '')`, encoded)
	return err
}

func (r *rawPostgres) insertWaiting(ctx context.Context, n int) error {
	return insertSeries(ctx, r.pool, postgres, n, `insert into raw (kind, attempts, run_at, payload)
		select 'waiting.' || (i %% 8), 1 + i %% 25, %[3]s, '`+encoded+`'`)
}

func (r *rawPostgres) listen(ctx context.Context) (<-chan struct{}, error) {
	listener := pq.NewListener(r.dsn, time.Second, time.Minute, nil)
	if err := listener.Listen("raw"); err != nil {
		return nil, err
	}
	notified := make(chan struct{})
	go func() {
		defer listener.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-listener.Notify:
			}
			select {
			case <-ctx.Done():
				return
			case notified <- struct{}{}:
			}
		}
	}()
	return notified, nil
}

func (r *rawPostgres) claim(ctx context.Context, name int64) ([]rawTask, error) {
	rows, err := r.take.QueryContext(ctx, name, rawBatch)
	return scanTasks(rows, err)
}

func (r *rawPostgres) done(ctx context.Context, name int64, tasks []rawTask) (int64, error) {
	ids, _ := arrays(tasks)
	res, err := r.end.ExecContext(ctx, ids, name)
	return affected(res, err)
}

func (r *rawPostgres) failed(ctx context.Context, name int64, tasks []rawTask) (int64, error) {
	ids, attempts := arrays(tasks)
	res, err := r.fail.ExecContext(ctx, ids, name, attempts, errHandler.Error())
	return affected(res, err)
}

func arrays(tasks []rawTask) (ids, attempts pq.Int64Array) {
	for _, t := range tasks {
		ids, attempts = append(ids, t.ID), append(attempts, t.Attempts)
	}
	return ids, attempts
}
