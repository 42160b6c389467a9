package pgxdb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue/internal/pgxdb"
	"github.com/falldue/falldue/internal/testdb"
)

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	dsn := testdb.DSN(t, testdb.Postgres)
	if !strings.Contains(dsn, "?") {
		dsn += "?"
	}
	pool, err := pgxpool.New(t.Context(), dsn+"&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestConnectionsStayTheSame: a connection that comes back from the pool is the one that it
// was, and has its statements, unless it was discarded.
func TestConnectionsStayTheSame(t *testing.T) {
	t.Parallel()
	pool := open(t)
	db := pgxdb.Open(pool)
	defer pgxdb.Close(pool)
	use := func(end error) (seen any, session int64) {
		t.Helper()
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		stmt, err := c.PrepareContext(t.Context(), "select pg_backend_pid()::bigint")
		if err != nil {
			t.Fatal(err)
		}
		if err := stmt.QueryRowContext(t.Context()).Scan(&session); err != nil {
			t.Fatal(err)
		}
		if err := c.Raw(func(dc any) error { seen = dc; return end }); !errors.Is(err, end) {
			t.Errorf("Raw returned %v, want %v", err, end)
		}
		return seen, session
	}
	first, session := use(nil)
	if again, same := use(nil); again != first || same != session {
		t.Errorf("the connection is another one, of session %d after %d", same, session)
	}
	if n := pool.Stat().IdleConns(); n != 1 {
		t.Errorf("the pool has %d idle connections, want that one", n)
	}
	if _, same := use(driver.ErrBadConn); same != session {
		t.Errorf("session %d, want %d again", same, session)
	}
	if _, next := use(nil); next == session {
		t.Errorf("session %d came back after it was discarded", next)
	}
	db.Driver().(interface{ DiscardIdle(ctx context.Context) }).DiscardIdle(t.Context())
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(testdb.Patience); pool.Stat().TotalConns() > 0; {
		select {
		case <-late:
			t.Fatal("the pool still has a connection")
		case <-tick.C:
		}
	}
}

const values = "select true, (-2)::smallint, (-4)::integer, (-8)::bigint, 'text'::text, ''::text, null::bigint, '{}'::json"

// TestValues: they are the same in a transaction of pgx, and as package driver allows them.
//
//nolint:paralleltest // it counts allocations
func TestValues(t *testing.T) {
	pool := open(t)
	want := fmt.Sprintf("%q", []any{true, int64(-2), int64(-4), int64(-8), "text", "", nil, "{}"})
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got string
	err = pgxdb.Tx{Tx: tx}.QueryRows(t.Context(), values, nil, func(row []driver.Value) error { got = fmt.Sprintf("%q", row); return nil })
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("in a transaction of pgx (error %v): %s", err, diff)
	}
	stop := errors.New("stop")
	err = pgxdb.Tx{Tx: tx}.QueryRows(t.Context(), "select generate_series(1, 10)", nil, func([]driver.Value) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("after an error of row it returned %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil { // the query has ended
		t.Error(err)
	}
	db := pgxdb.Open(pool)
	defer pgxdb.Close(pool)
	row := make([]any, 8)
	into := make([]any, len(row))
	for i := range row {
		into[i] = &row[i]
	}
	err = db.QueryRowContext(t.Context(), values).Scan(into...)
	if diff := cmp.Diff(want, fmt.Sprintf("%q", row)); err != nil || diff != "" {
		t.Errorf("by database/sql (error %v): %s", err, diff)
	}
	held, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if diff := cmp.Diff(want, shared(t, held.Raw)); diff != "" {
		t.Errorf("by NextShared: %s", diff)
	}
}

// shared returns the values by NextShared, which allocates nothing.
func shared(t *testing.T, onConn func(func(any) error) error) (got string) {
	t.Helper()
	if err := onConn(func(dc any) error {
		rows, err := dc.(driver.QueryerContext).QueryContext(t.Context(), values+" from generate_series(1, 200)", nil)
		if err != nil {
			return err
		}
		row, next := make([]driver.Value, 8), rows.(interface{ NextShared([]driver.Value) error }).NextShared
		if err := next(row); err != nil {
			return err
		}
		var list []any
		for _, v := range row {
			switch v := v.(type) {
			case *int64:
				list = append(list, *v)
			case *[]byte:
				list = append(list, *v)
			default:
				list = append(list, v)
			}
		}
		got = fmt.Sprintf("%q", list)
		if n := testing.AllocsPerRun(100, func() { err = next(row) }); n > 0 || err != nil {
			t.Errorf("a row takes %v allocations (error %v)", n, err)
		}
		return rows.Close()
	}); err != nil {
		t.Fatal(err)
	}
	return got
}
