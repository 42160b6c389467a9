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

// conn is a connection of the pool that is used through the driver's interfaces
// instead of database/sql's. No statement is sent again, statements stay prepared,
// and values are converted only once.
type conn struct {
	driver     any                  // the driver's connection
	keepsPlans bool                 // Caps.KeepsPlans
	prepared   map[string]*prepared // by their texts
	lastAnswer time.Time            // when the last answer came

	// Set while the connection is in use:
	sent   bool // a statement was sent that must not be sent again
	broken bool // the connection must not go back to the pool
}

const (
	// maxConns is the greatest number of connections that a store remembers, unless
	// twice the number of open connections is greater. The pool has closed some of
	// them meanwhile.
	maxConns = 200
	// maxPrepared is the greatest number of statements prepared on a connection.
	maxPrepared = 200
	// trustedFor is how long after an answer a connection is assumed to be alive.
	// After that it is pinged before the next statement, while another connection
	// can still be taken instead.
	trustedFor = time.Second
)

// onConn runs fn on a connection of the pool. It runs fn again on another connection
// if the connection was dead and fn sent nothing that must not be sent again.
func (s *Store) onConn(ctx context.Context, fn func(*conn) error) error {
	open := 0 // connections when the first was dead; all of them may be
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
		_ = held.Close() // an error means that it is closed
		if !called {
			err = lost
		}
		switch {
		case !errors.Is(err, driver.ErrBadConn):
			return err
		case ctx.Err() != nil:
			return ctx.Err() // which is why the driver gave the connection up
		case sent || try > 1 && try > open:
			return err
		case try == 1:
			open = s.db.Stats().OpenConnections + 1 // the pool has already discarded this one
		}
	}
}

// conn returns the conn of a driver's connection, which the caller holds. It reports
// false if the store cannot remember it, and the caller must clear it.
func (s *Store) conn(dc any) (_ *conn, known bool) {
	if !reflect.ValueOf(dc).Comparable() { // from a driver that wraps another
		return s.newConn(dc), false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[dc]
	if c == nil {
		if len(s.conns) >= max(maxConns, 2*s.db.Stats().OpenConnections) {
			clear(s.conns)
		}
		c = s.newConn(dc)
		s.conns[dc] = c
	}
	return c, true
}

func (s *Store) newConn(dc any) *conn {
	return &conn{driver: dc, keepsPlans: s.server.Caps.KeepsPlans, prepared: map[string]*prepared{}}
}

// clear closes the prepared statements.
func (c *conn) clear() {
	for _, stmt := range c.prepared {
		_ = stmt.Close() // a statement that is not closed ends with its connection
	}
	clear(c.prepared)
}

// prepare returns the prepared statement of a text, which it prepares on the first
// call. Its error is driver.ErrBadConn if the connection is dead.
func (c *conn) prepare(ctx context.Context, text string) (stmt *prepared, err error) {
	if stmt = c.prepared[text]; stmt != nil && c.keepsPlans && stmt.outdated() {
		_ = stmt.Close() // a statement that is not closed ends with its connection
		delete(c.prepared, text)
		stmt = nil
	}
	if stmt != nil {
		if ping, ok := c.driver.(driver.Pinger); ok && time.Since(c.lastAnswer) > trustedFor {
			if err = ping.Ping(ctx); err == nil {
				c.lastAnswer = time.Now()
			}
		}
		return stmt, err
	}
	if len(c.prepared) >= maxPrepared {
		c.clear()
	}
	anew, err := c.prepareAnew(ctx, text)
	if err != nil {
		return nil, err
	}
	stmt = &prepared{Stmt: anew, at: time.Now()}
	c.prepared[text] = stmt
	return stmt, nil
}

// prepareAnew prepares a statement. The caller closes it.
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

func (c *conn) queryPrepared(ctx context.Context, stmt *prepared, args []any, f func(row) error) error {
	named, err := namedValues(args)
	if err != nil {
		return err
	}
	q, ok := stmt.Stmt.(driver.StmtQueryContext)
	if !ok {
		return fmt.Errorf("%T cannot query with a context", stmt.Stmt)
	}
	sent := time.Now()
	result, err := q.QueryContext(ctx, named)
	err = eachDriver(result, err, f)
	c.ran(stmt, sent, err)
	return err
}

func (c *conn) exec(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) (sql.Result, error) {
	ready, err := c.prepare(ctx, stmt.SQL)
	if err != nil {
		return nil, err
	}
	return c.execPrepared(ctx, ready, stmt.Bind(values, rows))
}

func (c *conn) execPrepared(ctx context.Context, stmt *prepared, args []any) (sql.Result, error) {
	named, err := namedValues(args)
	if err != nil {
		return nil, err
	}
	e, ok := stmt.Stmt.(driver.StmtExecContext)
	if !ok {
		return nil, fmt.Errorf("%T cannot execute with a context", stmt.Stmt)
	}
	sent := time.Now()
	result, err := e.ExecContext(ctx, named)
	c.ran(stmt, sent, err)
	return result, err
}

// namedValues converts arguments to the type that drivers take.
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

// single is a connection that sends a statement at most once.
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

// begin begins a transaction at READ COMMITTED. Where the database has one writer at
// a time, it begins as the writer: a transaction that read first could not write
// after another one has written.
func (c *conn) begin(ctx context.Context, server dialect.Server) (driver.Tx, error) {
	if server.Caps.SingleWriter {
		return c.beginImmediate(ctx)
	}
	b, ok := c.driver.(driver.ConnBeginTx)
	if !ok {
		return nil, fmt.Errorf("%T cannot begin a transaction with a context", c.driver)
	}
	tx, err := b.BeginTx(ctx, driver.TxOptions{Isolation: driver.IsolationLevel(sql.LevelReadCommitted)})
	if err == nil {
		c.lastAnswer = time.Now()
	}
	return tx, err
}

// immediate is a transaction of SQLite that locks the database when it begins. The
// driver's own transactions do so only if the DSN says so.
type immediate struct {
	c   *conn
	ctx context.Context
}

func (c *conn) beginImmediate(ctx context.Context) (driver.Tx, error) {
	tx := immediate{c, context.WithoutCancel(ctx)}
	if _, err := c.exec(ctx, statements.Stmt{SQL: "begin immediate"}, nil, nil); err != nil {
		_ = tx.Rollback() // it may have begun before ctx ended
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

// backOff waits before a transaction is tried again after contention, and reports
// whether ctx allows another try. The time is random, so that transactions that
// collided do not collide again.
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
