package sqlgen

import (
	"errors"
	"fmt"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// DueParams names the columns of a table of tasks. Both columns are required.
type DueParams struct {
	// Table is the table, or its alias, that qualifies the names of both columns.
	// Defaults to column names without a table.
	Table string
	// AttemptsColumn is the column that counts the failed attempts of a task. It can have any numeric type.
	AttemptsColumn string
	// UpdatedAtColumn is the column with the time at which the delay begins: a TIMESTAMP or DATETIME on MySQL, MariaDB and
	// TiDB, a timestamptz or timestamp on PostgreSQL. On SQLite it is any value that julianday reads: the text of
	// CURRENT_TIMESTAMP or datetime(), or a Julian day.
	UpdatedAtColumn string
	// UTC reports whether the column is a DATETIME, or a timestamp without time zone, with values in UTC. By default,
	// values are in the session's time zone, as now() stores them in such a column. Do not set UTC for a TIMESTAMP or
	// timestamptz column. SQLite ignores UTC: its times are always in UTC.
	//
	// When summer time ends, one hour occurs twice. In the session's time zone, a DATETIME or a timestamp without time
	// zone in that hour is ambiguous, and the task may run up to an hour early or late. In columns of other types, times
	// are unambiguous.
	UTC bool
}

// Due returns the predicate that selects the rows that are due,
//
//	updated_at <= now - f(attempts)
//
// for a table with any other columns. now is the time on the database's clock. The wait is measured in elapsed time,
// even across the beginning or the end of summer time. The delay is exact to the microsecond, and does not include the
// jitter.
//
// No index serves the predicate, because it compares two columns. Use it for thousands of
// waiting rows, not for millions. For one number of attempts, an index on both columns
// serves it if a subquery replaces the attempts column with a literal:
//
//	select id from (select id, 3 as attempts, updated_at from jobs where attempts = 3) j where …
//
// On SQLite, the second part of such an index is julianday(updated_at).
//
// Names are quoted and can have any characters except NUL. Due returns an error if the name of a column is empty or
// contains NUL. The error names the column.
func Due(d dialect.Dialect, f Formula, p DueParams) (string, error) {
	attempts, err := column(d, p.Table, p.AttemptsColumn)
	if err != nil {
		return "", fmt.Errorf("sqlgen: the attempts column: %w", err)
	}
	updatedAt, err := column(d, p.Table, p.UpdatedAtColumn)
	if err != nil {
		return "", fmt.Errorf("sqlgen: the updated-at column: %w", err)
	}
	return d.Clock().Due(updatedAt, f.MicrosSQL(d, attempts), f.SQL(d, attempts), p.UTC), nil
}

func column(d dialect.Dialect, table, name string) (string, error) {
	if name == "" {
		return "", errors.New("must not be empty")
	}
	if strings.ContainsRune(table+name, 0) {
		return "", fmt.Errorf("%q: must not contain NUL", table+name)
	}
	if table == "" {
		return d.Quote(name), nil
	}
	return d.Quote(table) + "." + d.Quote(name), nil
}
