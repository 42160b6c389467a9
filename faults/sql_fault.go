package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

// sqlFaults are the faults that other sessions cause. Two of them do not apply to the
// TiDB of the tests: its LOCK TABLES does nothing, and a KILL during a statement can
// make the whole server panic while it rolls back. Nor do they apply to Vitess: its LOCK
// TABLES does nothing, and it lists no sessions of its clients.
var sqlFaults = []fault{
	{"end the sessions", func(r *Run) bool { return hasLinks(r) && r.db.engine != testdb.TiDB && !onVitess(r) }, func(ctx context.Context, r *Run, _ *rand.Rand) error {
		return endSessions(ctx, r)
	}},
	// Galera has no locks of tables, and a node may hang when one is asked for.
	{"lock the table", func(r *Run) bool { return r.db.engine != testdb.Galera && r.db.engine != testdb.TiDB && !onVitess(r) }, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		take, release := lockTable(r.db.engine)
		return r.onConn(ctx, func(ctx context.Context, conn *sqlx.Conn) error {
			for _, stmt := range take {
				if _, err := conn.ExecContext(ctx, stmt); err != nil {
					return err
				}
			}
			r.wait(ctx, span(dice, lease))
			_, err := conn.ExecContext(context.WithoutCancel(ctx), release)
			return err
		})
	}},
	{"hold rows in a long transaction", hasLinks, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		tx, err := r.admin.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		var ids []int64
		err = tx.SelectContext(ctx, &ids, "select id from falldue_tasks where state in ('open', 'snoozed') order by id desc limit 200 for update")
		if err != nil {
			return err
		}
		r.wait(ctx, span(dice, lease*2))
		return nil
	}},
	{"provoke deadlocks", hasLinks, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		for range 20 {
			if err := touchRows(ctx, r, dice); err != nil {
				return err
			}
		}
		return nil
	}},
	{"refuse to write", canRefuse, refuseWrites},
	{"migrate", nil, func(ctx context.Context, r *Run, _ *rand.Rand) error {
		return r.queue.Migrate(ctx)
	}},
}

// endSessions ends all sessions in the database but its own.
func endSessions(ctx context.Context, r *Run) error {
	if r.db.engine == testdb.Postgres {
		_, err := r.admin.ExecContext(ctx, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		return err
	}
	// On one connection: another may lead to another node.
	return r.onConn(ctx, func(ctx context.Context, conn *sqlx.Conn) error {
		var ids []int64
		if err := conn.SelectContext(ctx, &ids, "select id from information_schema.processlist where db = database() and id <> connection_id()"); err != nil {
			return err
		}
		for _, id := range ids {
			// An error means that the session has ended by itself.
			_, _ = conn.ExecContext(ctx, fmt.Sprintf("kill %d", id))
		}
		return nil
	})
}

func lockTable(engine string) (take []string, release string) {
	switch engine {
	case testdb.Postgres:
		return []string{"begin", "lock table falldue_tasks in access exclusive mode"}, "rollback"
	case testdb.SQLite:
		return []string{"begin exclusive"}, "rollback"
	}
	return []string{"lock tables falldue_tasks write"}, "unlock tables"
}

// touchRows updates rows to the values that they have, in a random order, so that two
// transactions can deadlock.
func touchRows(ctx context.Context, r *Run, dice *rand.Rand) error {
	tx, err := r.admin.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, "select id from falldue_tasks where state in ('open', 'snoozed') order by id desc limit 100"); err != nil {
		return err
	}
	dice.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for batch := range slices.Chunk(ids[:min(len(ids), 12)], 1) {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("update falldue_tasks set priority = priority where id = %d", batch[0])); err != nil {
			return nil //nolint:nilerr // a deadlock, of which this was the victim
		}
		r.wait(ctx, span(dice, 10*time.Millisecond))
	}
	_ = tx.Commit() // an error is a conflict with a worker, which is what the fault is for
	return nil
}
