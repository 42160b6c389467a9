package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
)

// postgres is PostgreSQL, through lib/pq or pgx's database/sql driver.
type postgres struct{}

func (postgres) Name() Name                { return Postgres }
func (postgres) Quote(ident string) string { return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"` }
func (postgres) Placeholder(i int) string  { return "$" + strconv.Itoa(i) }

// What is written for PostgreSQL gives operators and functions arguments of exactly
// the types that PostgreSQL's own take. If a type had to be converted first, another
// operator that takes it as it is would be called instead, and anybody who may create
// objects in a schema of the search path can define one. So bigint * interval, for
// which there is only float8 * interval, is written with a cast.

// Literal casts, because a bare 1.5 is numeric, whose power() takes seconds of
// processor time. float8's takes nanoseconds.
func (postgres) Literal(v float64) string { return signed(v, formatFloat(v)+"::float8") }

func (postgres) Func(name string) string { return name }

func (postgres) Cast(expr string, to Type) string {
	switch to {
	case Double:
		return expr + "::float8"
	case Int:
		return expr + "::bigint"
	case Text:
		return expr + "::text"
	case JSON:
		return expr + "::json"
	}
	panic(unknownType)
}

func (postgres) Clock() Clock {
	return Clock{
		// now() is old in a long transaction, and clock_timestamp() is volatile,
		// so that no index can serve a comparison with it.
		Now:   "statement_timestamp()",
		Shift: func(m, us string) string { return "(" + m + " + " + microseconds(us) + ")" },
		// extract computes in numeric, which is slow; date_part computes in float8.
		// The cast rounds, so that microseconds are exact until the year 2106. It
		// would fail on infinity, which a user may write into a row.
		Micros: func(m string) string {
			return "(date_part('epoch'::text, least(greatest(" + m + ", '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint"
		},
		Moment: func(us string) string { return "(timestamptz 'epoch' + " + microseconds(us) + ")" },
		Due: func(column, micros, _ string, utc bool) string {
			now := "statement_timestamp()"
			if utc {
				now = "(" + now + " at time zone 'UTC')"
			}
			return column + " <= " + now + " - " + microseconds(micros)
		},
	}
}

// microseconds returns the interval of so many microseconds.
func microseconds(us string) string { return "(" + us + ")::float8 * interval '1 microsecond'" }

// Classify reads the SQLSTATE, which both drivers return from a method.
func (postgres) Classify(err error) Class {
	var pgErr interface{ SQLState() string }
	if !errors.As(err, &pgErr) {
		return classifyConn(err)
	}
	code := pgErr.SQLState()
	switch code {
	case "40001", "40P01", "55P03": // serialization, deadlock, lock not available
		return Contention
	case "23505":
		return UniqueViolation
	case "42P01", "3F000":
		return UndefinedTable
	case "26000", "42P05": // a prepared statement is not there, or is there already
		return PreparedStatementMissing
	case "0A000": // not supported, such as another type of a result than when the statement was prepared
		return StatementStale
	case "22P05", "22021": // untranslatable character, not in the repertoire
		return Unencodable
	case "25006":
		return ReadOnly
	case "57014", "53000", "53100", "53200", "53400", "58000", "58030": // canceled by timeout, resources, disk, memory, limit, system, storage
		return Unavailable
	case "57P01", "57P02", "57P03", "57P04", "53300", // shutdown, crash, starting, dropped, too many connections
		"57P05", "25P03", "25P04": // a timeout that ends the session: idle, idle in a transaction, of a transaction
		return Disconnected
	}
	if strings.HasPrefix(code, "08") {
		return Disconnected
	}
	return Other
}

// errClosed is the error of a database of package sql that was closed. The package has no name
// for it.
var errClosed = func() error {
	db := sql.OpenDB(nil)
	_ = db.Close()
	return db.PingContext(context.Background())
}()

// classifyConn classifies errors of the connection, which no server sent.
func classifyConn(err error) Class {
	var netErr net.Error
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, errClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return Disconnected
	case errors.As(err, &netErr):
		return Disconnected
	}
	return Other
}
