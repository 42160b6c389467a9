package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"strings"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// conn is a connection of the pool that is used through the driver's interfaces
// instead of database/sql's. No statement is sent again, statements stay prepared,
// and values are converted only once.
type conn struct {
	driver     any // the driver's connection
	classify   func(error) dialect.Class
	keepsPlans bool                 // Caps.KeepsPlans
	pooled     bool                 // Caps.TransactionPooling
	asked      bool                 // each error needs a check whether the connection is lost (Caps.LossWithoutCode)
	odd        string               // Caps.OddSession, until the session was found to be fine
	inside     string               // Caps.InTransaction
	prepared   map[string]*prepared // by their texts
	opened     time.Time            // when the store first used it
	lastAnswer time.Time            // when the last answer came

	// Set while the connection is in use:
	use    *use
	sent   bool // a statement was sent that must not be sent again
	begun  bool // a transaction was begun
	broken bool // the connection must not go back to the pool
	silent bool // a ping was not answered
}

const (
	// maxConns is the greatest number of connections that a store remembers, unless
	// twice the number of open connections is greater. The pool has closed some of
	// them in the meantime.
	maxConns = 200
	// trustedFor is how long after an answer a connection is assumed to be alive.
	// After that it is pinged before the next statement, while another connection
	// can still be taken instead. It is longer than the pauses of a worker that is asleep,
	// so that such a worker does not ping before each statement.
	trustedFor = 2 * time.Second
	// pingTimeout is how long a connection may take to answer a ping. A shorter
	// statement gives it half of its time, and has the rest for another connection.
	pingTimeout = 5 * time.Second
)

// onConn runs fn on a connection of the pool. It runs fn again on another connection
// if the connection was dead and fn sent nothing that must not be sent again. It
// returns soon after ctx has ended, whatever the driver does. fn may keep running then, and
// must not write variables that the caller reads, except in the function that it passes to query.
func (s *Store) onConn(ctx context.Context, fn func(*conn) error) error {
	s.tried.Store(time.Now().UnixNano())
	s.uses.Add(1)
	err := s.onAnyConn(ctx, fn)
	if err == nil || ctx.Err() == nil && s.Classify(err) != dialect.Disconnected {
		s.answered.Store(time.Now().UnixNano())
	}
	return err
}

// LastStatements returns when the last statement began, and when the database last answered one,
// even with an error. A time is zero if there was none.
func (s *Store) LastStatements() (tried, answered time.Time) {
	at := func(n int64) (t time.Time) {
		if n > 0 {
			t = time.Unix(0, n)
		}
		return t
	}
	return at(s.tried.Load()), at(s.answered.Load())
}

// Statements returns how often the store has used a connection: for a statement, or a transaction.
func (s *Store) Statements() int64 { return s.uses.Load() }

// onAnyConn is onConn without the times.
func (s *Store) onAnyConn(ctx context.Context, fn func(*conn) error) error {
	return s.attend(ctx, func(u *use) error {
		open := 0 // connections when the first was dead; all of them may be
		for try := 1; ; try++ {
			sent, err := s.tryConn(ctx, u, fn)
			switch {
			case !errors.Is(err, driver.ErrBadConn):
				return err
			case ctx.Err() != nil:
				return ctx.Err() // which is why the driver gave the connection up
			case sent || try > 1 && try > open:
				return err
			case try == 1:
				open = s.pool().OpenConnections + 1 // the pool has already discarded this one
			}
		}
	})
}

// tryConn runs fn on one connection of the pool, and reports whether fn sent a statement that
// must not be sent again.
func (s *Store) tryConn(ctx context.Context, u *use, fn func(*conn) error) (sent bool, err error) {
	held, from, err := s.takeConn(ctx)
	if err != nil {
		return false, s.unconnected(err)
	}
	if err := ctx.Err(); err != nil { // the caller may be gone
		from.giveBack(held, nil)
		return false, err
	}
	called, silent := false, false
	lost := held.Raw(func(dc any) error {
		called = true
		c, known := s.conn(dc)
		if !known {
			defer c.forgetAll()
		}
		c.use, c.sent, c.begun, c.broken, c.silent = u, false, false, false, false
		u.begin(dc, from)
		if err = c.checkSession(ctx); err == nil {
			err = fn(c)
		}
		closed := u.end()
		sent, silent = c.sent, c.silent
		if closed || c.broken || errors.Is(err, driver.ErrBadConn) || s.refuses(c, err) {
			if s.server.Caps.Embedded {
				// SQLite keeps a connection, and its lock, as long as it has statements. Another store of the pool may have some.
				_ = c.execText(context.WithoutCancel(ctx), "rollback") // fails without a transaction
				c.forgetAll()
			}
			return driver.ErrBadConn
		}
		return nil
	})
	from.giveBack(held, lost)
	if silent {
		s.discardIdle() // other idle connections go the same way to the server
	}
	if !called {
		err = lost
	}
	return sent, err
}

// conn returns the conn of a driver's connection, which the caller holds. It reports
// false if the store cannot remember the conn. Then the caller must clear it.
func (s *Store) conn(dc any) (_ *conn, known bool) {
	if !reflect.ValueOf(dc).Comparable() { // from a driver that wraps another
		return s.newConn(dc), false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[dc]
	if c == nil {
		if len(s.conns) >= max(maxConns, 2*s.pool().OpenConnections) {
			clear(s.conns)
		}
		c = s.newConn(dc)
		s.conns[dc] = c
	}
	return c, true
}

func (s *Store) newConn(dc any) *conn {
	now := time.Now()
	return &conn{
		driver: dc, classify: s.server.Classify, keepsPlans: s.server.Caps.KeepsPlans, pooled: s.server.Caps.TransactionPooling,
		asked: s.server.Caps.LossWithoutCode,
		odd:   s.server.Caps.OddSession, inside: s.server.Caps.InTransaction,
		prepared: map[string]*prepared{}, opened: now, lastAnswer: now,
	}
}

// checkSession returns an error if falldue cannot work with the settings of the connection's
// session. New has asked one session only, and others may begin with other settings.
func (c *conn) checkSession(ctx context.Context) error {
	if c.odd == "" {
		return nil
	}
	var what string
	err := c.queryAnew(ctx, statements.Stmt{SQL: c.odd}, nil, nil, func(r row) error {
		what = r.text(0)
		return nil
	})
	if err == nil {
		err = dialect.OddSession(what)
	}
	if err == nil {
		c.odd = ""
	}
	return err
}

// check returns driver.ErrBadConn if the connection is dead, and an error if ctx has
// ended. It pings a connection that has been idle.
func (c *conn) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ping, ok := c.driver.(driver.Pinger)
	if !ok || time.Since(c.lastAnswer) <= trustedFor {
		return nil
	}
	timeout := answerTimeout(ctx)
	brief, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	closing := time.AfterFunc(timeout+min(timeout/4, cancelDelay), c.use.close)
	err := ping.Ping(brief)
	if !closing.Stop() || err != nil {
		c.silent = brief.Err() != nil
		return driver.ErrBadConn
	}
	c.lastAnswer = time.Now()
	return nil
}

// answerTimeout returns how long to wait for an answer that a live connection gives
// immediately.
func answerTimeout(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(pingTimeout, max(time.Until(end)/2, time.Millisecond))
	}
	return pingTimeout
}

// lost returns the error of a driver call. If the connection is lost and the error does
// not show it (Caps.LossWithoutCode), lost marks the error for Classify.
func (c *conn) lost(err error) error {
	if err == nil || !c.asked {
		return err
	}
	if v, ok := c.driver.(driver.Validator); !ok || v.IsValid() {
		return err
	}
	return asLost(err)
}

// unconnected is [conn.lost] for the error of making a connection.
func (s *Store) unconnected(err error) error {
	if !s.server.Caps.LossWithoutCode {
		return err
	}
	return asLost(err)
}

// asLost marks an error that no server sent, so that Classify takes it for the loss of a
// connection. It returns the error unmarked if the caller has given up.
func asLost(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return lostError{err}
}

type lostError struct{ error }

func (e lostError) Unwrap() []error { return []error{e.error, net.ErrClosed} }

func (c *conn) query(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	ready, err := c.prepare(ctx, stmt.SQL)
	if err != nil {
		return err
	}
	return c.queryPrepared(ctx, ready, stmt.Bind(values, rows), f)
}

func (c *conn) queryPrepared(ctx context.Context, stmt *prepared, args []any, f func(row) error) error {
	sent := time.Now()
	err := c.queryStmt(ctx, stmt.Stmt, args, f)
	c.ran(stmt, sent, err)
	return err
}

func (c *conn) queryStmt(ctx context.Context, stmt driver.Stmt, args []any, f func(row) error) error {
	named, err := namedValues(args)
	if err != nil {
		return err
	}
	q, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return fmt.Errorf("%T cannot query with a context", stmt)
	}
	result, err := q.QueryContext(ctx, named)
	return c.lost(eachDriver(result, err, c.use.unlessAbandoned(f)))
}

// queryAnew runs a statement that runs seldom, and does not keep it prepared.
func (c *conn) queryAnew(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	args := stmt.Bind(values, rows)
	if q, ok := c.driver.(driver.QueryerContext); ok && len(args) == 0 { // not every statement can be prepared
		result, err := q.QueryContext(ctx, stmt.SQL, nil)
		return c.lost(eachDriver(result, err, c.use.unlessAbandoned(f)))
	}
	ready, err := c.prepareAnew(ctx, stmt.SQL)
	if err != nil {
		return err
	}
	return errors.Join(c.queryStmt(ctx, ready, args, f), ready.Close())
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
	err = c.lost(err)
	c.ran(stmt, sent, err)
	return result, err
}

// execText runs a statement without arguments, and prepares it only if the driver has
// no other way.
func (c *conn) execText(ctx context.Context, text string) error {
	err := driver.ErrSkip
	if e, ok := c.driver.(driver.ExecerContext); ok {
		_, err = e.ExecContext(ctx, text, nil)
		err = c.lost(err)
	}
	if errors.Is(err, driver.ErrSkip) {
		_, err = c.exec(ctx, statements.Stmt{SQL: text}, nil, nil)
	}
	if err == nil {
		c.lastAnswer = time.Now()
	}
	return err
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
// after another one has written. Transactions begin and end with statements, since not
// all drivers end the Commit and the Rollback of a driver.Tx with a context.
func (c *conn) begin(ctx context.Context, server dialect.Server) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	for text := range strings.SplitSeq(server.Caps.Begin, "; ") {
		if err := c.execText(ctx, text); err != nil {
			return err
		}
	}
	c.begun = true
	return nil
}

// errUndone is the error of a statement before which the server has undone the transaction.
var errUndone = errors.New("falldue: the server has rolled back the transaction")

// checkTransaction returns an error if the server has undone the transaction that the connection
// has begun, where that may go unreported.
func (c *conn) checkTransaction(ctx context.Context) error {
	if !c.begun || c.inside == "" {
		return nil
	}
	inside := false
	err := c.queryAnew(ctx, statements.Stmt{SQL: c.inside}, nil, nil, func(r row) error {
		n, err := r.int(0)
		inside = n == 1
		return err
	})
	if err == nil && !inside {
		err = errUndone
	}
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
