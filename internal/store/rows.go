package store

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// row is a row as a driver returns it. It is valid until the next row is read.
type row []driver.Value

// int returns the integer in a column.
func (r row) int(i int) (int64, error) {
	switch v := r[i].(type) {
	case int64:
		return v, nil
	case []byte:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n, nil
		}
		return 0, fmt.Errorf("column %d is %.100q; it should be a whole number", i, v)
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("column %d is %.100q; it should be a whole number", i, fmt.Sprint(r[i]))
}

// text returns the text in a column, or "" if it is NULL.
func (r row) text(i int) string {
	switch v := r[i].(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

// eachDriver calls f for each row that a driver returned, and closes rows.
func eachDriver(rows driver.Rows, err error, f func(row) error) error {
	if err != nil {
		return err
	}
	into := make(row, len(rows.Columns()))
	for {
		err = rows.Next(into)
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
