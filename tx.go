package falldue

import (
	"context"
	"database/sql"
)

// Tx is a transaction in which a task is enqueued or settled: a *sqlx.Tx or a
// *sql.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}
