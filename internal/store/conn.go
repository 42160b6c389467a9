package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// conn is a connection of the pool, used by the driver's own interfaces:
// nobody repeats a statement, statements stay prepared, and rows are read
// without being converted twice.
type conn struct {
	driver   any                    // the driver's connection
	prepared map[string]driver.Stmt // by text
	answered time.Time              // last

	// For whoever holds the connection:
	sent   bool // something was sent that must not be sent twice
	broken bool // it must not go back to the pool
}

const (
	// maxConns is how many connections a store remembers, or twice as many as
	// there are open ones: some of them the pool has closed meanwhile.
	maxConns = 200
	// maxPrepared bounds what stays prepared on a connection.
	maxPrepared = 200
	// trustedFor is how long a connection that answered is taken for alive. One
	// that was silent for longer is pinged first, while taking another one costs
	// nothing.
	trustedFor = time.Second
)

// onConn runs fn on a connection of the pool, and on another one while fn finds
// its connection dead before it sent anything that must not be sent twice.
func (s *Store) onConn(ctx context.Context, fn func(*conn) error) error {
	for try := 1; ; try++ {
		held, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		called, sent := false, false
		lost := held.Raw(func(dc any) error {
			called = true
			c, known := s.conn(dc)
			if !known {
				defer c.clear()
			}
			c.sent, c.broken = false, false
			err = fn(c)
			sent = c.sent
			if c.broken || errors.Is(err, driver.ErrBadConn) {
				return driver.ErrBadConn
			}
			return nil
		})
		_ = held.Close() // an error says that it is closed
		if !called {
			err = lost
		}
		if sent || !errors.Is(err, driver.ErrBadConn) || try == maxConns {
			return err
		}
	}
}

// conn returns what is known of a driver's connection, which the caller holds,
// and whether it will be known next time.
func (s *Store) conn(dc any) (_ *conn, known bool) {
	if !reflect.TypeOf(dc).Comparable() { // of a driver that wraps another
		return &conn{driver: dc, prepared: map[string]driver.Stmt{}}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[dc]
	if c == nil {
		if len(s.conns) >= max(maxConns, 2*s.db.Stats().OpenConnections) {
			clear(s.conns)
		}
		c = &conn{driver: dc, prepared: map[string]driver.Stmt{}}
		s.conns[dc] = c
	}
	return c, true
}

// clear closes what is prepared.
func (c *conn) clear() {
	for _, stmt := range c.prepared {
		_ = stmt.Close() // what could not be closed goes with the connection
	}
	clear(c.prepared)
}

// prepare returns a statement that is prepared on the connection. Its error is
// driver.ErrBadConn where the connection is dead.
func (c *conn) prepare(ctx context.Context, text string) (stmt driver.Stmt, err error) {
	if stmt = c.prepared[text]; stmt != nil {
		if ping, ok := c.driver.(driver.Pinger); ok && time.Since(c.answered) > trustedFor {
			if err = ping.Ping(ctx); err == nil {
				c.answered = time.Now()
			}
		}
		return stmt, err
	}
	if len(c.prepared) >= maxPrepared {
		c.clear()
	}
	if stmt, err = c.prepareAnew(ctx, text); err != nil {
		return nil, err
	}
	c.prepared[text] = stmt
	return stmt, nil
}

// prepareAnew prepares a statement that the caller closes.
func (c *conn) prepareAnew(ctx context.Context, text string) (driver.Stmt, error) {
	if p, ok := c.driver.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, text)
	}
	return c.driver.(driver.Conn).Prepare(text)
}

func (c *conn) query(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	ready, err := c.prepare(ctx, stmt.SQL)
	if err != nil {
		return err
	}
	return c.queryPrepared(ctx, ready, stmt.Bind(values, rows), f)
}

func (c *conn) queryPrepared(ctx context.Context, stmt driver.Stmt, args []any, f func(row) error) error {
	named, err := namedValues(args)
	if err != nil {
		return err
	}
	q, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return fmt.Errorf("%T cannot query with a context", stmt)
	}
	result, err := q.QueryContext(ctx, named)
	if err := eachDriver(result, err, f); err != nil {
		return err
	}
	c.answered = time.Now()
	return nil
}

func (c *conn) exec(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) (sql.Result, error) {
	ready, err := c.prepare(ctx, stmt.SQL)
	if err != nil {
		return nil, err
	}
	return c.execPrepared(ctx, ready, stmt.Bind(values, rows))
}

func (c *conn) execPrepared(ctx context.Context, stmt driver.Stmt, args []any) (sql.Result, error) {
	named, err := namedValues(args)
	if err != nil {
		return nil, err
	}
	e, ok := stmt.(driver.StmtExecContext)
	if !ok {
		return nil, fmt.Errorf("%T cannot execute with a context", stmt)
	}
	result, err := e.ExecContext(ctx, named)
	if err == nil {
		c.answered = time.Now()
	}
	return result, err
}

// namedValues turns arguments into what drivers take.
func namedValues(args []any) ([]driver.NamedValue, error) {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, err
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return values, nil
}

// single is a connection for one statement, which is sent at most once.
type single struct{ *conn }

func (c single) query(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	ready, err := c.prepare(ctx, stmt.SQL)
	if err != nil {
		return err
	}
	c.sent = true
	return c.queryPrepared(ctx, ready, stmt.Bind(values, rows), f)
}

func (c single) exec(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) (sql.Result, error) {
	ready, err := c.prepare(ctx, stmt.SQL)
	if err != nil {
		return nil, err
	}
	c.sent = true
	return c.execPrepared(ctx, ready, stmt.Bind(values, rows))
}

// begin begins a transaction: at READ COMMITTED, or where the database has one
// writer at a time as a writer, since a transaction that read first could not
// begin to write once another had written.
func (c *conn) begin(ctx context.Context, server dialect.Server) (driver.Tx, error) {
	if server.Caps.SingleWriter {
		return c.beginImmediate(ctx)
	}
	b, ok := c.driver.(driver.ConnBeginTx)
	if !ok {
		return nil, fmt.Errorf("%T cannot begin a transaction with a context", c.driver)
	}
	return b.BeginTx(ctx, driver.TxOptions{Isolation: driver.IsolationLevel(sql.LevelReadCommitted)})
}

// immediate is a transaction of SQLite that locks the database from its start.
// The driver's own transactions begin so only if the DSN says so.
type immediate struct {
	c   *conn
	ctx context.Context
}

func (c *conn) beginImmediate(ctx context.Context) (driver.Tx, error) {
	tx := immediate{c, context.WithoutCancel(ctx)}
	if _, err := c.exec(ctx, statements.Stmt{SQL: "begin immediate"}, nil, nil); err != nil {
		_ = tx.Rollback() // it may have begun all the same, when ctx ended
		return nil, err
	}
	return tx, nil
}

func (i immediate) Commit() error {
	_, err := i.c.exec(i.ctx, statements.Stmt{SQL: "commit"}, nil, nil)
	return err
}

func (i immediate) Rollback() error {
	_, err := i.c.exec(i.ctx, statements.Stmt{SQL: "rollback"}, nil, nil)
	return err
}

// backOff waits before another try of what contention undid, and reports whether
// there is time for one. Full jitter keeps those who collided from doing so again.
func (s *Store) backOff(ctx context.Context, try int) bool {
	t := time.NewTimer(rand.N(time.Millisecond << min(try, 7)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
