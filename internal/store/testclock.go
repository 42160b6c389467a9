package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// testClocks has the pools on which queues use the test clock: a *sql.DB, or a pool of
// another library, on which queues have a *sql.DB of their own.
var testClocks sync.Map

// ShareTestClock makes later queues on db use the test clock if those on pool do, and not
// otherwise.
func ShareTestClock(pool any, db *sql.DB) {
	if _, ok := testClocks.Load(pool); ok {
		testClocks.Store(db, true)
	} else {
		testClocks.Delete(db)
	}
}

// ServerOn returns the server of a queue on a pool: one with the test clock, if package
// tasktest has opened that clock.
func ServerOn(db *sqlx.DB, server dialect.Server) dialect.Server {
	if _, ok := testClocks.Load(db.DB); ok {
		return statements.WithTestClock(server)
	}
	return server
}

// HasTestClock reports whether the store uses the test clock, and whether stores that are made on its pool now do.
func (s *Store) HasTestClock() (uses, offered bool) {
	_, offered = testClocks.Load(s.db.DB)
	return statements.HasTestClock(s.server), offered
}

// TestClock is the clock of tests that can be moved, see [statements.WithTestClock].
type TestClock struct {
	db     *sqlx.DB
	server dialect.Server
	pools  []any
}

// OpenTestClock returns the test clock of a database, and makes the clock if there is none.
// Until Close, queues that are made on db or on one of the pools of other libraries use the clock.
func OpenTestClock(ctx context.Context, db *sqlx.DB, pools ...any) (*TestClock, error) {
	server, err := dialect.Probe(ctx, db)
	if err != nil {
		return nil, err
	}
	c := &TestClock{db: db, server: statements.WithTestClock(server), pools: append([]any{db.DB}, pools...)}
	for _, make := range []func(dialect.Server) statements.Stmt{statements.CreateTestClock, statements.StartTestClock} {
		if err := c.exec(ctx, make(server), nil); err != nil {
			return nil, err
		}
	}
	for _, pool := range c.pools {
		testClocks.Store(pool, true)
	}
	return c, nil
}

// Close makes later queues on the pools use the database's own clock.
func (c *TestClock) Close() {
	for _, pool := range c.pools {
		testClocks.Delete(pool)
	}
}

// Move moves the clock ahead.
func (c *TestClock) Move(ctx context.Context, d time.Duration) error {
	return c.exec(ctx, statements.MoveTestClock(c.server), statements.Values{"micros": d.Microseconds()})
}

// Now returns the time.
func (c *TestClock) Now(ctx context.Context) (time.Time, error) {
	var micros int64
	err := c.db.QueryRowContext(ctx, statements.Now(c.server).SQL).Scan(&micros)
	return Time(micros), err
}

// exec runs a statement, and again if another process does the same at the same time.
func (c *TestClock) exec(ctx context.Context, stmt statements.Stmt, values statements.Values) error {
	for try := 1; ; try++ {
		_, err := c.db.ExecContext(ctx, stmt.SQL, stmt.Bind(values, nil)...)
		if err == nil || try == contentionTries {
			return err
		}
		if class := c.server.Classify(err); class != dialect.Contention && class != dialect.UniqueViolation {
			return err
		}
	}
}

// Running describes a task that a worker runs, or returns "" if there is none.
func (s *Store) Running(ctx context.Context) (string, error) {
	var id int64
	var kind, worker string
	err := s.db.QueryRowContext(ctx, s.fixed("running", statements.Running).SQL).Scan(&id, &kind, &worker)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return fmt.Sprintf("task %d of kind %q on worker %q", id, kind, strings.TrimRight(worker, " ")), s.explain(err)
}
