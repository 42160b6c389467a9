package dialect

import (
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

// Literal casts: a bare 1.5 is numeric here, whose power() takes seconds of
// processor time where float8 takes nanoseconds.
func (postgres) Literal(v float64) string { return signed(v, formatFloat(v)+"::float8") }
func (postgres) Float(expr string) string { return expr + "::float8" }
func (postgres) Func(name string) string  { return name }

func (postgres) Clock() Clock {
	return Clock{
		// statement_timestamp, not now: in a long transaction now() is old,
		// and clock_timestamp() is volatile, which keeps it out of indexes.
		Now:   "statement_timestamp()",
		Shift: func(m, us string) string { return "(" + m + " + (" + us + ") * interval '1 microsecond')" },
		// date_part computes in float8, extract in numeric, which is slow. The
		// cast rounds, so that microseconds are exact until the year 2106. It
		// would raise on infinity, which somebody may write into a row.
		Micros: func(m string) string {
			return "(date_part('epoch', least(greatest(" + m + ", '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint"
		},
		Moment: func(us string) string { return "(timestamptz 'epoch' + (" + us + ") * interval '1 microsecond')" },
	}
}

// Classify reads the SQLSTATE, which both drivers offer through a method.
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
	case "57014", "25006", "53000", "53100", "53200", "53400", "58000", "58030": // canceled by timeout, read only, resources, disk, memory, limit, system, storage
		return Unavailable
	case "57P01", "57P02", "57P03", "57P04", "53300": // shutdown, crash, starting, dropped, too many connections
		return Disconnected
	}
	if strings.HasPrefix(code, "08") {
		return Disconnected
	}
	return Other
}

// classifyConn sorts the errors that never reached a server.
func classifyConn(err error) Class {
	var netErr net.Error
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return Disconnected
	case errors.As(err, &netErr):
		return Disconnected
	}
	return Other
}
