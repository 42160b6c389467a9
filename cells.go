package falldue

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
)

// cells are a row as a driver gives it. They hold until the next row is read.
type cells []driver.Value

// int is a cell that holds a whole number.
func (c cells) int(i int) (int64, error) {
	switch v := c[i].(type) {
	case int64:
		return v, nil
	case []byte:
		return strconv.ParseInt(string(v), 10, 64)
	case string:
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, fmt.Errorf("column %d is %T; it should be a whole number", i, c[i])
}

// text is a cell that holds text, "" where that is NULL.
func (c cells) text(i int) string {
	switch v := c[i].(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

// bytes is a copy of a cell that holds text, nil where that is NULL.
func (c cells) bytes(i int) []byte {
	switch v := c[i].(type) {
	case []byte:
		return bytes.Clone(v)
	case string:
		return []byte(v)
	}
	return nil
}

// each calls f for the rows that database/sql returned, and closes them.
func each(rows *sql.Rows, err error, f func(cells) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row, got, into := make(cells, len(columns)), make([]any, len(columns)), make([]any, len(columns))
	for i := range got {
		into[i] = &got[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range got {
			row[i] = v
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return rows.Err()
}
