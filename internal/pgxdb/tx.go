package pgxdb

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"
)

// Tx is a transaction of pgx with the methods of falldue.RowsTx.
type Tx struct{ pgx.Tx }

// ExecContext runs a statement that returns no rows.
func (t Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.Exec(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

// QueryRows runs a query and calls row with the values of each row.
func (t Tx) QueryRows(ctx context.Context, query string, args []any, row func([]driver.Value) error) error {
	result, err := t.Query(ctx, query, append([]any{formats}, args...)...)
	if err != nil {
		return err
	}
	defer result.Close()
	var values []driver.Value
	for result.Next() {
		values = appendValues(values[:0], result)
		if err := row(values); err != nil {
			return err
		}
	}
	return result.Err()
}
