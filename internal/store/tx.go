package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/falldue/falldue/internal/statements"
)

// Tx is a caller's transaction. It is also a sqlTx or a rowsTx. These have no method in common
// that returns rows, since only database/sql can make a *sql.Rows.
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

// CheckTx returns an error if statements cannot run in tx.
func CheckTx(tx Tx) error {
	if tx == nil {
		return errors.New("the transaction is nil")
	}
	if _, pool := tx.(interface{ SetMaxOpenConns(n int) }); pool {
		return fmt.Errorf("%T is a pool: must be a transaction. Without a transaction, call the method without Tx in its name", tx)
	}
	switch tx.(type) {
	case rowsTx, sqlTx:
		return nil
	}
	return fmt.Errorf("a transaction of type %T: must be a transaction of database/sql or sqlx, another type with their methods ExecContext and QueryContext, or a type with the methods of RowsTx", tx)
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
