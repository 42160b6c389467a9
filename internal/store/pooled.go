package store

import (
	"context"
	"database/sql/driver"
	"errors"
)

// pooled is a statement behind a pooler in transaction mode. The driver sends its text
// with its arguments each time, in one step. Nothing is prepared by name, not even where
// the pooler would prepare it again in other sessions: PgBouncer would do so for the same
// text, and its first plan, which was made for an empty table, would stay.
type pooled struct {
	driver any // the driver's connection
	text   string
}

var errOneStep = errors.New("the driver cannot send a statement and its arguments in one step, as a pooler in transaction mode requires")

// QueryContext implements [driver.StmtQueryContext].
func (p pooled) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := p.driver.(driver.QueryerContext)
	if !ok {
		return nil, errOneStep
	}
	return q.QueryContext(ctx, p.text, args)
}

// ExecContext implements [driver.StmtExecContext].
func (p pooled) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	e, ok := p.driver.(driver.ExecerContext)
	if !ok {
		return nil, errOneStep
	}
	return e.ExecContext(ctx, p.text, args)
}

// Close does nothing, since the session has nothing of the statement.
func (pooled) Close() error { return nil }

// NumInput implements [driver.Stmt].
func (pooled) NumInput() int { return -1 }

// Exec implements [driver.Stmt], and is not called.
func (pooled) Exec([]driver.Value) (driver.Result, error) { return nil, errors.ErrUnsupported }

// Query implements [driver.Stmt], and is not called.
func (pooled) Query([]driver.Value) (driver.Rows, error) { return nil, errors.ErrUnsupported }
