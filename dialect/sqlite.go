package dialect

import (
	"errors"
	"strings"
)

// sqlite is SQLite, through modernc.org/sqlite.
type sqlite struct{}

func (sqlite) Name() Name                { return SQLite }
func (sqlite) Quote(ident string) string { return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"` }
func (sqlite) Placeholder(int) string    { return "?" }

func (sqlite) Cast(expr string, to Type) string {
	switch to {
	case Double:
		return "cast(" + expr + " as real)"
	case Int:
		return "cast(" + expr + " as integer)"
	case Text:
		return "cast(" + expr + " as text)"
	case JSON:
		return expr
	}
	panic(unknownType)
}

// Literal relies on the point or exponent: 15 is an INTEGER here, 15.0 is REAL.
func (sqlite) Literal(v float64) string {
	text := formatFloat(v)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return signed(v, text)
}

func (sqlite) Func(name string) string {
	switch name {
	case "least":
		return "min"
	case "greatest":
		return "max"
	}
	return name
}

func (sqlite) Clock() Clock {
	return Clock{
		// SQLite's clock counts milliseconds; 210866760000000 is 1970 in
		// milliseconds since the Julian epoch.
		Now:   "(cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000",
		Shift: func(m, us string) string { return "(" + m + " + (" + us + "))" },
		// A column may hold a value of any type, text too.
		Micros: func(m string) string { return "cast(" + m + " as integer)" },
		Moment: func(us string) string { return us },
		// A user's column holds text or a Julian day, which julianday reads. It
		// knows UTC only.
		Due: func(column, _, seconds string, _ bool) string {
			return "julianday(" + column + ") <= julianday('now') - (" + seconds + ") / 86400.0"
		},
	}
}

// Classify reads SQLite's primary result code, the low byte of the extended one.
func (sqlite) Classify(err error) Class {
	var liteErr interface{ Code() int }
	if !errors.As(err, &liteErr) {
		return classifyConn(err)
	}
	code := liteErr.Code()
	switch code & 0xff {
	case 5, 6: // busy, locked
		return Contention
	case 7, 8, 10, 13, 14: // memory, read only, storage, full, cannot open
		return Unavailable
	case 17: // schema
		return StatementStale
	}
	switch code {
	case 1555, 2067: // primary key, unique
		return UniqueViolation
	}
	return Other
}
