package falldue

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/falldue/falldue/internal/store"
)

// Tx is a transaction in which a task is enqueued or settled:
//
//   - *sql.Tx, *sqlx.Tx, and every other type with their methods ExecContext and
//     QueryContext, such as the transactions of ent;
//   - every type with the methods of [RowsTx], such as a pgx.Tx wrapped by package
//     pgxqueue.
//
// For any other type, methods that take a Tx return an error that wraps [ErrInvalid]. The same is true of a pool such
// as *sql.DB, even though a pool has these methods.
type Tx interface {
	// ExecContext runs a statement that returns no rows.
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// RowsTx is a [Tx] of a library that is not built on database/sql. An adapter with
// these two methods makes a transaction of such a library a RowsTx.
type RowsTx interface {
	Tx
	// QueryRows runs a query and calls row with the values of each row. Whole numbers
	// are int64 or decimal text, texts are string or []byte, and NULL is nil. The
	// values need to be valid only until row returns. After an error of row, QueryRows
	// ends the query and returns that error.
	QueryRows(ctx context.Context, query string, args []any, row func(values []driver.Value) error) error
}

// checkTx returns an error if nothing can be enqueued or settled in tx.
func checkTx(tx Tx) error {
	if err := store.CheckTx(tx); err != nil {
		return invalid("%w", err)
	}
	return nil
}
