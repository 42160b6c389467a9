package sqlgen

import (
	"errors"
	"fmt"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// DueParams names the columns of a table that holds tasks.
type DueParams struct {
	// Table is the table, or its alias, that has both columns. Defaults to none:
	// column names without a table.
	Table string
	// AttemptsColumn holds how often the task has failed, as any type of number.
	AttemptsColumn string
	// UpdatedAtColumn holds the moment that the delay counts from: a TIMESTAMP
	// or DATETIME on MySQL, MariaDB and TiDB, a timestamptz or timestamp on
	// PostgreSQL, and on SQLite whatever julianday reads: the text that
	// CURRENT_TIMESTAMP and datetime() give, or a Julian day.
	UpdatedAtColumn string
	// UTC says that the column is a DATETIME, or a timestamp without time
	// zone, whose values are in UTC. Defaults to the session's time zone, in
	// which now() fills such a column; TIMESTAMP and timestamptz columns need
	// that default. SQLite's functions know UTC only.
	//
	// In the hour that summer time repeats when it ends, a DATETIME or a timestamp
	// in the session's zone does not say which of the two it means, and the task
	// may run up to an hour early or late. Other columns have no such hour.
	UTC bool
}

// Due returns the predicate that selects the rows that are due,
//
//	updated_at <= now - f(attempts)
//
// for a table of any shape. now is read from the database's clock, and the time between
// is counted as it passes, also across a change of summer time. The column stands
// alone on the left of a comparison, so that an index serves the predicate where attempts are a
// literal. On SQLite, which stores moments as text, it is the argument of
// julianday(), which can be indexed, too. The delay is exact to the microsecond.
//
// Names are quoted and may have any characters but NUL. Due's error names the
// column that is missing.
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
		return "", errors.New("no name was given")
	}
	if strings.ContainsRune(table+name, 0) {
		return "", fmt.Errorf("the name %q has a NUL in it", table+name)
	}
	if table == "" {
		return d.Quote(name), nil
	}
	return d.Quote(table) + "." + d.Quote(name), nil
}
