package pgxdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// conn is a connection of a pool. Only who holds it uses it.
type conn struct {
	pgx    *pgx.Conn
	held   *pgxpool.Conn
	byName bool // statements are prepared by name
	keep   bool // the pool may keep it
}

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// PrepareContext prepares a statement, or returns the one that is prepared already. Where
// nothing is prepared by name, it sends nothing.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if c.pgx.IsClosed() {
		return nil, driver.ErrBadConn
	}
	if !c.byName {
		return &stmt{c, text, -1}, nil
	}
	prepared, err := c.pgx.Prepare(ctx, text, text)
	if err != nil {
		return nil, unsent(err)
	}
	return &stmt{c, text, len(prepared.ParamOIDs)}, nil
}

// QueryContext runs a query, prepared or not.
func (c *conn) QueryContext(ctx context.Context, text string, named []driver.NamedValue) (driver.Rows, error) {
	if c.pgx.IsClosed() {
		return nil, driver.ErrBadConn
	}
	result, err := c.pgx.Query(ctx, text, append([]any{formats}, values(named)...)...)
	if err != nil {
		return nil, unsent(err)
	}
	return &rows{Rows: result}, nil
}

// ExecContext runs a statement that returns no rows, prepared or not.
func (c *conn) ExecContext(ctx context.Context, text string, named []driver.NamedValue) (driver.Result, error) {
	if c.pgx.IsClosed() {
		return nil, driver.ErrBadConn
	}
	tag, err := c.pgx.Exec(ctx, text, values(named)...)
	if err != nil {
		return nil, unsent(err)
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

// CopyFrom runs a COPY … FROM STDIN with what it reads from lines.
func (c *conn) CopyFrom(ctx context.Context, text string, lines io.Reader) error {
	_, err := c.pgx.PgConn().CopyFrom(ctx, lines, text)
	return err
}

func values(named []driver.NamedValue) []any {
	list := make([]any, len(named))
	for i, v := range named {
		list[i] = v.Value
	}
	return list
}

// unsent returns driver.ErrBadConn for an error before anything was sent.
func unsent(err error) error {
	if pgconn.SafeToRetry(err) {
		return driver.ErrBadConn
	}
	return err
}

// Ping implements [driver.Pinger].
func (c *conn) Ping(ctx context.Context) error {
	if c.pgx.Ping(ctx) != nil {
		return driver.ErrBadConn
	}
	return nil
}

func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx begins a transaction, which ends with ctx.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.pgx.IsClosed() {
		return nil, driver.ErrBadConn
	}
	var options pgx.TxOptions
	if level := sql.IsolationLevel(o.Isolation); level != sql.LevelDefault {
		options.IsoLevel = pgx.TxIsoLevel(strings.ToLower(level.String()))
	}
	if o.ReadOnly {
		options.AccessMode = pgx.ReadOnly
	}
	t, err := c.pgx.BeginTx(ctx, options)
	if err != nil {
		return nil, unsent(err)
	}
	return tx{ctx, t}, nil
}

// ResetSession is called when database/sql has kept the connection and uses it again.
func (c *conn) ResetSession(context.Context) error {
	c.keep = false
	if c.pgx.IsClosed() {
		return driver.ErrBadConn
	}
	return nil
}

// IsValid is called before Close, except for a connection that must not be used again.
func (c *conn) IsValid() bool {
	c.keep = !c.pgx.IsClosed() && c.pgx.PgConn().TxStatus() == 'I'
	return c.keep
}

// Close gives the connection back to the pool, which discards one that is closed.
func (c *conn) Close() error {
	if !c.keep {
		HangUp(c.pgx)
	}
	c.held.Release()
	return nil
}

// HangUp closes a connection without waiting for the server. After an error pgx may have
// begun to close it, and would wait up to 15 seconds. A pool counts it until it is closed.
func HangUp(c *pgx.Conn) {
	brief, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(brief)
	_ = c.PgConn().Conn().Close()
}

// Abort ends what another goroutine does with the connection.
func (c *conn) Abort() { _ = c.pgx.PgConn().Conn().Close() }

// stmt is a prepared statement, or the text of one that is not prepared by name.
type stmt struct {
	conn *conn
	text string
	args int // how many it takes; -1 if that is not known
}

// closeTimeout is how long the server may take to drop a statement.
const closeTimeout = 5 * time.Second

func (s *stmt) NumInput() int { return s.args }

// Close drops the statement in the server.
func (s *stmt) Close() error {
	if !s.conn.byName {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.conn.pgx.Deallocate(ctx, s.text)
}

func (s *stmt) QueryContext(ctx context.Context, named []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.text, named)
}

func (s *stmt) ExecContext(ctx context.Context, named []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.text, named)
}

func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), numbered(args))
}

func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), numbered(args))
}

func numbered(args []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}

// tx is a transaction of database/sql.
type tx struct {
	//nolint:containedctx // Commit and Rollback of driver.Tx take none
	ctx context.Context
	pgx.Tx
}

func (t tx) Commit() error   { return t.Tx.Commit(t.ctx) }
func (t tx) Rollback() error { return t.Tx.Rollback(t.ctx) }
