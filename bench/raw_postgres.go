package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// rawPostgres is the limit of the database itself: plain statements on lib/pq,
// two loops that claim 500 tasks by a stored time, handle them and settle them,
// fenced by the name of the claim. It does nothing else that a queue does.
type rawPostgres struct {
	dsn      string
	settings settings
	pool     *sqlx.DB
	one      *sqlx.Stmt
	claim    *sqlx.Stmt
	done     *sqlx.Stmt
	failed   *sqlx.Stmt
}

const (
	rawLoops = 2
	rawBatch = 500
)

// claimNumber names claims, so that each can be told from every other.
var claimNumber atomic.Int64

func openRawPostgres(ctx context.Context, db database, s settings) (_ subject, err error) {
	r := &rawPostgres{dsn: db.dsn, settings: s}
	if r.pool, err = db.open(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	for _, stmt := range []string{
		`create table raw (id bigint generated always as identity primary key, kind text not null, state text not null default 'open',
			attempts int not null default 0, run_at timestamptz not null default now(), claimed_by bigint, last_error text, payload json not null)
			with (fillfactor = 80)`,
		`create index raw_due on raw (run_at) where state = 'open'`,
		`create table raw_errors (id bigint not null, attempt int not null, at timestamptz not null default now(), error text not null, primary key (id, attempt))`,
	} {
		if _, err := r.pool.ExecContext(ctx, stmt); err != nil {
			return nil, err
		}
	}
	done := `delete from raw using unnest($1::bigint[]) as s(i) where id = i and claimed_by = $2`
	if s.done == kept {
		done = `update raw set state = 'done', claimed_by = null from unnest($1::bigint[]) as s(i) where id = i and claimed_by = $2`
	}
	for target, text := range map[**sqlx.Stmt]string{
		&r.one: `insert into raw (kind, payload) values ('bench', $1)`,
		&r.claim: `update raw set attempts = attempts + 1, run_at = now() + interval '1 minute', claimed_by = $1
			where id = any(array(select id from raw where state = 'open' and run_at <= now() order by run_at limit $2 for update skip locked))
			returning id, attempts, payload`,
		&r.done: done,
		&r.failed: `with e as (insert into raw_errors (id, attempt, error) select i, n, $4 from unnest($1::bigint[], $3::int[]) as s(i, n))
			update raw set run_at = now() + interval '1 day', claimed_by = null, last_error = $4 from unnest($1::bigint[]) as s(i) where id = i and claimed_by = $2`,
	} {
		if *target, err = r.pool.PreparexContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *rawPostgres) close() { _ = r.pool.Close() }

func (r *rawPostgres) insert(ctx context.Context, n int) error {
	stmt, err := r.pool.PreparexContext(ctx, `insert into raw (kind, payload) select 'bench', p::json from unnest($1::text[]) as s(p)`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return spread(ctx, n, rawBatch, rawLoops, func(ctx context.Context, n int) error {
		_, err := stmt.ExecContext(ctx, pq.StringArray(payloads(n)))
		return err
	})
}

// payloads returns n payloads.
func payloads(n int) []string {
	return strings.Split(strings.Repeat(encoded+"\n", n)[:n*(len(encoded)+1)-1], "\n")
}

func (r *rawPostgres) copyIn(ctx context.Context, n int) error {
	return spread(ctx, n, perCopy, rawLoops, func(ctx context.Context, n int) error {
		tx, err := r.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		in, err := tx.PrepareContext(ctx, pq.CopyIn("raw", "kind", "payload"))
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
	return waiting(ctx, r.pool, postgres, n, `insert into raw (kind, attempts, run_at, payload)
		select 'waiting.' || (i %% 8), 1 + i %% 25, %[2]s + interval '1 day', '`+encoded+`'`)
}

func (r *rawPostgres) work(ctx context.Context, handle func() error) (func() error, error) {
	listener := pq.NewListener(r.dsn, time.Second, time.Minute, nil)
	if err := listener.Listen("raw"); err != nil {
		return nil, err
	}
	return running(ctx, func(ctx context.Context) error {
		defer listener.Close()
		return loops(ctx, rawLoops, func(ctx context.Context) error {
			for {
				n, err := r.round(handle)
				if err != nil {
					return err
				}
				if n > 0 && ctx.Err() == nil {
					continue
				}
				select {
				case <-ctx.Done():
					return nil
				case <-listener.Notify:
				case <-time.After(time.Second):
				}
			}
		})
	})
}

// loops runs loop several times at once and returns the first error.
func loops(ctx context.Context, n int, loop func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, n)
	for range n {
		go func() {
			err := loop(ctx)
			if err != nil {
				cancel(err)
			}
			ended <- err
		}()
	}
	var first error
	for range n {
		if err := <-ended; first == nil {
			first = err
		}
	}
	return first
}

// round claims a batch, handles it and settles it. It returns how many it was.
func (r *rawPostgres) round(handle func() error) (int, error) {
	ctx := context.Background()
	name := claimNumber.Add(1)
	rows, err := r.claim.QueryContext(ctx, name, rawBatch)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var done, failed, attempts []int64
	for rows.Next() {
		var id, attempt int64
		var text []byte
		if err := rows.Scan(&id, &attempt, &text); err != nil {
			return 0, err
		}
		if handle() == nil {
			done = append(done, id)
		} else {
			failed, attempts = append(failed, id), append(attempts, attempt)
		}
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	for _, s := range []struct {
		ids  []int64
		stmt *sqlx.Stmt
		args []any
	}{
		{done, r.done, []any{pq.Int64Array(done), name}},
		{failed, r.failed, []any{pq.Int64Array(failed), name, pq.Int64Array(attempts), errHandler.Error()}},
	} {
		if len(s.ids) == 0 {
			continue
		}
		res, err := s.stmt.ExecContext(ctx, s.args...)
		if err != nil {
			return 0, err
		}
		if n, err := res.RowsAffected(); err != nil || int(n) != len(s.ids) {
			return 0, fmt.Errorf("%d of %d claims settled: %w", n, len(s.ids), err)
		}
	}
	return len(done) + len(failed), nil
}
