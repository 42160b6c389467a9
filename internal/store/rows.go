package store

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/falldue/falldue/internal/statements"
)

// row is a row as a driver returns it, or as a [sharedRows] does. It is valid until the next row
// is read.
type row []driver.Value

// sharedRows is a result whose rows can be read without allocations, such as pgxdb's. Numbers are
// an *int64 and texts a *[]byte. The next row uses both again.
type sharedRows interface {
	NextShared(into []driver.Value) error
}

// int returns the integer in a column.
func (r row) int(i int) (int64, error) {
	n, err := statements.WholeIn(r[i])
	if err != nil {
		return 0, fmt.Errorf("column %d: %w", i, err)
	}
	return n, nil
}

// text returns the text in a column, or "" if it is NULL.
func (r row) text(i int) string {
	text, _ := statements.TextIn(r[i])
	return text
}

// eachDriver calls f for each row that a driver returned, and closes rows.
func eachDriver(rows driver.Rows, err error, f func(row) error) error {
	if err != nil {
		return err
	}
	into, next := make(row, len(rows.Columns())), rows.Next
	if r, ok := rows.(sharedRows); ok {
		next = r.NextShared
	}
	for {
		err = next(into)
		if errors.Is(err, io.EOF) {
			return rows.Close()
		}
		if err == nil {
			err = f(into)
		}
		if err != nil {
			if closed := rows.Close(); !errors.Is(err, closed) { // pgx returns the error of Next again
				err = errors.Join(err, closed)
			}
			return err
		}
	}
}

// eachSQL calls f for each row that database/sql returned, and closes rows.
func eachSQL(rows *sql.Rows, err error, f func(row) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	r := make(row, len(columns))
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range values {
			r[i] = v
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return rows.Err()
}
