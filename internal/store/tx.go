package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/falldue/falldue/internal/statements"
)

// Tx is a caller's transaction. It is also a sqlTx or a rowsTx. No method that returns
// rows is common to both, since only database/sql can make a *sql.Rows.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// sqlTx is a transaction of database/sql.
type sqlTx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// rowsTx is a transaction that returns rows without database/sql; see falldue.RowsTx.
type rowsTx interface {
	QueryRows(ctx context.Context, query string, args []any, row func(values []driver.Value) error) error
}

// IsTx reports whether statements can run in tx.
func IsTx(tx Tx) bool {
	switch tx.(type) {
	case rowsTx, sqlTx:
		return true
	}
	return false
}

// unprepared runs statements in a caller's transaction.
type unprepared struct{ Tx }

func (u unprepared) query(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	args := stmt.Bind(values, rows)
	switch tx := u.Tx.(type) {
	case rowsTx:
		return tx.QueryRows(ctx, stmt.SQL, args, func(values []driver.Value) error { return f(values) })
	case sqlTx:
		result, err := tx.QueryContext(ctx, stmt.SQL, args...)
		return eachSQL(result, err, f)
	}
	return fmt.Errorf("%T cannot query", u.Tx)
}

func (u unprepared) exec(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) (sql.Result, error) {
	return u.ExecContext(ctx, stmt.SQL, stmt.Bind(values, rows)...)
}
