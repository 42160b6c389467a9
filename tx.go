package falldue

import (
	"context"
	"database/sql"
)

// Tx is a transaction that a task is enqueued or settled in: *sqlx.Tx, *sql.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}
