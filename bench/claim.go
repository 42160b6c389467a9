package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// backlogs are the numbers of waiting tasks beside which claims are measured.
var backlogs = []int{10_000, 100_000, 1_000_000, 10_000_000}

const (
	claimSize  = 100
	claimTimes = 20
	claimsTake = time.Minute // at the most, if that is three times
)

var tables = dialect.Tables{Prefix: "falldue_"}

// claimCost measures how long one claim of 100 tasks takes, of 1,000 that are
// due, beside more and more that are not: for each ten that wait after a
// failure there are two of paused kinds, two that are scheduled and two done.
// It is measured once by lane, as a worker claims, and once by the predicate as
// it is written down, updated_at + f(attempts) <= now.
func claimCost(ctx context.Context, c *config, db database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok || f.name != "falldue" {
		return nil, errors.ErrUnsupported
	}
	pool := f.pools[0]
	server, err := dialect.Probe(ctx, pool)
	if err != nil {
		return nil, err
	}
	if err := f.insert(ctx, 1000); err != nil {
		return nil, err
	}
	got, there := values{}, 0
	for _, n := range backlogs {
		if n > c.backlog {
			break
		}
		if err := f.insertBeside(ctx, n-there); err != nil {
			return nil, err
		}
		there = n
		if err := db.rest(ctx); err != nil {
			return nil, err
		}
		if server.Caps.CachesStatistics { // as a worker does after its first slow sweep
			if _, err := pool.ExecContext(ctx, statements.RefreshStatistics(server, tables).SQL); err != nil {
				return nil, err
			}
		}
		ways := map[string]func(context.Context, *sqlx.Tx) error{
			"falldue":       func(ctx context.Context, tx *sqlx.Tx) error { return claimByLane(ctx, tx, server) },
			"falldue-sweep": func(ctx context.Context, tx *sqlx.Tx) error { return sweep(ctx, tx, server) },
			"naive":         func(ctx context.Context, tx *sqlx.Tx) error { return claimNaively(ctx, tx, server) },
		}
		if server.Caps.LooseScan {
			ways["falldue-steps"] = func(ctx context.Context, tx *sqlx.Tx) error { return sweepBySteps(ctx, tx, server) }
		}
		for system, claim := range ways {
			took, err := medianTime(ctx, pool, claim)
			if err != nil {
				return nil, fmt.Errorf("%s beside %d: %w", system, n, err)
			}
			got[fmt.Sprintf("claim_ms_%d %s", n, system)] = took
		}
	}
	return got, nil
}

// insertBeside stores n tasks that wait after failures, and the others beside.
func (f *falldueSubject) insertBeside(ctx context.Context, n int) error {
	if err := f.insertWaiting(ctx, n); err != nil {
		return err
	}
	for _, row := range []string{
		`'paused.' || (i %% 3), 'open', 0, %[2]s`, `'bench', 'open', 0, %[3]s`, `'bench', 'done', 1, %[2]s`,
	} {
		insert := `insert into falldue_tasks (queue, kind, state, attempts, updated_at, created_at, first_attempted_at, attempted_at, payload)
			select 'default', ` + row + `, %[1]s, %[1]s, %[1]s, '` + encoded + `'`
		if err := waiting(ctx, f.pools[0], f.engine, n/5, insert); err != nil {
			return err
		}
	}
	return nil
}

// medianTime runs claim in transactions that are rolled back and returns the
// median of the milliseconds it takes.
func medianTime(ctx context.Context, pool *sqlx.DB, claim func(context.Context, *sqlx.Tx) error) (float64, error) {
	var times []float64
	for first := time.Now(); len(times) < 3 || len(times) < claimTimes && time.Since(first) < claimsTake; {
		tx, err := pool.BeginTxx(ctx, nil)
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		err = claim(ctx, tx)
		times = append(times, time.Since(begin).Seconds()*1000)
		if err := errors.Join(err, tx.Rollback()); err != nil {
			return 0, err
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// lanesBeside are those of the tasks due, of the paused kinds, and of those that
// wait: level i % 25 and kind i % 8 meet in all ways.
const lanesBeside = 1 + 3 + waitingKinds*waitingLevels

// sweep finds the lanes of the queue by one statement.
func sweep(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	stmt := statements.Sweep(server, tables)
	return expect(ctx, tx, lanesBeside, stmt.SQL, stmt.Bind(statements.Values{"queue": "default"}, nil))
}

// sweepBySteps finds them by a statement each.
func sweepBySteps(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	next := statements.NextLane(server, tables)
	stmt, err := tx.PrepareContext(ctx, next.SQL)
	if err != nil {
		return err
	}
	defer stmt.Close()
	var (
		state, kind, policy string
		priority, attempts  int
		lanes               int
		anchor, now         int64
	)
	for ; err == nil; lanes++ {
		err = stmt.QueryRowContext(ctx, next.Bind(statements.Values{
			"queue": "default", "state": state, "priority": priority, "kind": kind, "policy": policy, "attempts": attempts,
		}, nil)...).Scan(&state, &priority, &kind, &policy, &attempts, &anchor, &now)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if lanes--; lanes != lanesBeside {
		return fmt.Errorf("%d lanes instead of %d", lanes, lanesBeside)
	}
	return nil
}

// claimByLane claims from all lanes that a worker with handlers for all kinds
// but the paused ones remembers, due or not: at most 128, as a worker does.
func claimByLane(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	delay := tomorrow.Delay()
	if !statements.ClaimsAtOnce(server) {
		stmt := statements.ClaimLane(server, tables, &delay)
		return expect(ctx, tx, claimSize, stmt.SQL, stmt.Bind(statements.Values{
			"queue": "default", "state": "open", "priority": 0, "kind": "bench", "policy": "", "attempts": 0, "since": 0, "limit": claimSize,
		}, nil))
	}
	stmt := statements.Claim(server, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{delay}})
	var rows []statements.Row
	for i := range 101 {
		l := map[string]any{"state": "open", "priority": int64(0), "kind": "bench", "policy": "", "attempts": int64(0), "since": int64(0), "formula": int64(0)}
		if i < 100 { // lanes in which nothing is due are looked into, too
			l["kind"], l["attempts"] = fmt.Sprintf("waiting.%d", i%waitingKinds), int64(1+i%waitingLevels)
		}
		row := make(statements.Row, len(statements.LaneColumns))
		for i, column := range statements.LaneColumns {
			row[i] = l[column.Name]
		}
		rows = append(rows, row)
	}
	return expect(ctx, tx, claimSize, stmt.SQL, stmt.Bind(statements.Values{"queue": "default", "worker": "bench", "lease": 60_000_000, "limit": claimSize}, rows))
}

// claimNaively selects what is due by the predicate as it is written down.
func claimNaively(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	clock, delay := server.Clock(), tomorrow.Delay()
	return expect(ctx, tx, claimSize, fmt.Sprintf(
		"select id, payload from falldue_tasks where queue = 'default' and state = 'open' and kind not like 'paused%%'"+
			" and %s <= %s order by priority, updated_at limit %d for update skip locked",
		clock.Shift("updated_at", delay.MicrosSQL(server, "attempts")), clock.Now, claimSize), nil)
}

// expect runs a query and checks how many rows it returns.
func expect(ctx context.Context, tx *sqlx.Tx, want int, query string, args []any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil || n == want {
		return err
	}
	return fmt.Errorf("%d rows instead of %d", n, want)
}
