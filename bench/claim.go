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

// backlogs lists the numbers of waiting tasks with which claims are measured.
var backlogs = []int{10_000, 100_000, 1_000_000, 10_000_000}

const (
	claimSize    = 100
	maxClaims    = 20
	maxClaimTime = time.Minute // after this, three claims are enough
)

var tables = dialect.Tables{Prefix: "falldue_"}

// claimCost measures the time of one claim of 100 tasks, out of 1,000 that are due,
// with a growing number of tasks that are not: for every ten that wait after a
// failure there are two of paused kinds, two scheduled ones and two done ones. It
// measures the claim by lane, as workers do it, the sweep, and the claim by the
// plain predicate, updated_at + f(attempts) <= now.
func claimCost(ctx context.Context, c *config, db database, s subject) (values, error) {
	if !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	f := s.(*falldueSubject)
	pool := f.pools[0]
	server, err := dialect.Probe(ctx, pool)
	if err != nil {
		return nil, err
	}
	if err := f.insert(ctx, 1000); err != nil {
		return nil, err
	}
	got, stored := values{}, 0
	for _, n := range backlogs {
		if n > c.backlog {
			break
		}
		if err := f.insertBacklog(ctx, n-stored); err != nil {
			return nil, err
		}
		stored = n
		if err := db.analyze(ctx); err != nil {
			return nil, err
		}
		if server.Caps.CachesStatistics { // workers do this after their first slow sweep
			if _, err := pool.ExecContext(ctx, statements.RefreshStatistics(server, tables).SQL); err != nil {
				return nil, err
			}
		}
		variants := map[string]func(context.Context, *sqlx.Tx) error{
			"falldue":       func(ctx context.Context, tx *sqlx.Tx) error { return claimByLane(ctx, tx, server) },
			"falldue-sweep": func(ctx context.Context, tx *sqlx.Tx) error { return sweep(ctx, tx, server) },
			"naive":         func(ctx context.Context, tx *sqlx.Tx) error { return claimNaively(ctx, tx, server) },
		}
		if server.Caps.LooseScan {
			variants["falldue-steps"] = func(ctx context.Context, tx *sqlx.Tx) error { return sweepBySteps(ctx, tx, server) }
		}
		for system, claim := range variants {
			took, err := medianTime(ctx, pool, claim)
			if err != nil {
				return nil, fmt.Errorf("%s with %d waiting: %w", system, n, err)
			}
			got[fmt.Sprintf("claim_ms_%d %s", n, system)] = took
		}
	}
	return got, nil
}

// insertBacklog stores n tasks that wait after failures, and the paused, scheduled
// and done ones that belong to them.
func (f *falldueSubject) insertBacklog(ctx context.Context, n int) error {
	if err := f.insertWaiting(ctx, n); err != nil {
		return err
	}
	for _, row := range []string{
		`'paused.' || (i %% 3), 'open', 0, %[2]s`, `'bench', 'open', 0, %[3]s`, `'bench', 'done', 1, %[2]s`,
	} {
		insert := `insert into falldue_tasks (queue, kind, state, attempts, updated_at, created_at, first_attempted_at, attempted_at, payload)
			select 'default', ` + row + `, %[1]s, %[1]s, %[1]s, '` + encoded + `'`
		if err := insertSeries(ctx, f.pools[0], f.engine, n/5, insert); err != nil {
			return err
		}
	}
	return nil
}

// medianTime runs claim several times, in transactions that are rolled back, and
// returns the median time in milliseconds.
func medianTime(ctx context.Context, pool *sqlx.DB, claim func(context.Context, *sqlx.Tx) error) (float64, error) {
	var times []float64
	for first := time.Now(); len(times) < 3 || len(times) < maxClaims && time.Since(first) < maxClaimTime; {
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

// laneCount is the number of lanes: one of the due tasks, three of the paused
// kinds, and one for each combination of kind i % 8 and attempts 1 + i % 25.
const laneCount = 1 + 3 + waitingKinds*waitingLevels

// sweep finds the lanes of the queue with one statement.
func sweep(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	stmt, place := statements.Sweep(server, tables, 1), statements.FirstPlace("default")
	return expectRows(ctx, tx, laneCount, stmt.SQL, stmt.Bind(statements.Values{"page": 2 * laneCount}, []statements.Row{statements.PlaceColumns(server).Row(&place)}))
}

// sweepBySteps finds the lanes of the queue with one statement per lane.
func sweepBySteps(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	next := statements.NextLane(server, tables)
	stmt, err := tx.PrepareContext(ctx, next.SQL)
	if err != nil {
		return err
	}
	defer stmt.Close()
	var last statements.Lane
	lanes := 0
	for ; err == nil; lanes++ {
		values := statements.Values{"queue": "default"}
		statements.SetLane(values, last)
		var anchor, now int64
		err = stmt.QueryRowContext(ctx, next.Bind(values, nil)...).
			Scan(&last.State, &last.Key, &last.Priority, &last.Kind, &last.Policy, &last.Attempts, &anchor, &now)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if lanes--; lanes != laneCount {
		return fmt.Errorf("%d lanes instead of %d", lanes, laneCount)
	}
	return nil
}

// claimByLane claims from the lanes, due or not, that a worker with handlers for
// all kinds but the paused ones remembers: fewer than 128, which is the most that
// a worker claims from.
func claimByLane(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	delay := tomorrow.Delay()
	if !statements.ClaimsAtOnce(server) {
		stmt := statements.ClaimLane(server, tables, &delay)
		values := statements.Values{"queue": "default", "since": 0, "limit": claimSize}
		statements.SetLane(values, statements.Lane{State: "open", Kind: "bench"})
		return expectRows(ctx, tx, claimSize, stmt.SQL, stmt.Bind(values, nil))
	}
	stmt := statements.Claim(server, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{delay}})
	rows := statements.LaneColumns.Rows(101, func(i int) *statements.WantedLane {
		lane := statements.Lane{State: "open", Kind: "bench"}
		if i < 100 { // the claim also looks into lanes in which nothing is due
			lane.Kind, lane.Attempts = fmt.Sprintf("waiting.%d", i%waitingKinds), 1+i%waitingLevels
		}
		return &statements.WantedLane{Lane: lane, Running: "open", Most: 1 + waitingLevels, Room: claimSize}
	})
	return expectRows(ctx, tx, claimSize, stmt.SQL, stmt.Bind(statements.Values{"queue": "default", "worker": "bench", "lease": 60_000_000, "limit": claimSize}, rows))
}

// claimNaively selects due tasks by the plain predicate.
func claimNaively(ctx context.Context, tx *sqlx.Tx, server dialect.Server) error {
	clock, delay := server.Clock(), tomorrow.Delay()
	return expectRows(ctx, tx, claimSize, fmt.Sprintf(
		"select id, payload from falldue_tasks where queue = 'default' and state = 'open' and kind not like 'paused%%'"+
			" and %s <= %s order by priority, updated_at limit %d for update skip locked",
		clock.Shift("updated_at", delay.MicrosSQL(server, "attempts")), clock.Now, claimSize), nil)
}

// expectRows runs a query and checks how many rows it returns.
func expectRows(ctx context.Context, tx *sqlx.Tx, want int, query string, args []any) error {
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
