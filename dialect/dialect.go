// Package dialect says what a database engine is and what the server at hand
// can do. It holds how an engine writes names, parameters, numbers and times
// ([Dialect]), how its drivers report errors ([Class]), and what a probe of
// the live server found ([Server], [Caps]). It builds no statements: that is
// package sqlgen, which imports this one.
package dialect

import "fmt"

// Name is the name of an engine, as the command line and the folders of
// migrations and golden files spell it.
type Name string

// The engines falldue speaks.
const (
	Postgres Name = "postgres"
	MySQL    Name = "mysql"
	MariaDB  Name = "mariadb"
	SQLite   Name = "sqlite"
	TiDB     Name = "tidb"
)

// Names lists the engines in the order in which documents name them.
var Names = []Name{Postgres, MySQL, MariaDB, SQLite, TiDB}

// Dialect is how one engine writes SQL and reports errors. Every method
// returns SQL text made of its arguments, which are SQL already; nothing that
// a user typed may be passed in, except a name to Quote.
type Dialect interface {
	// Name is the engine's name.
	Name() Name
	// Quote writes ident as a quoted identifier, its quotes doubled.
	Quote(ident string) string
	// Placeholder writes the i-th parameter of a statement, counted from 1.
	Placeholder(i int) string
	// Literal writes v as a literal of the engine's double precision type.
	// v must be finite.
	Literal(v float64) string
	// Float converts an integer expression to double precision.
	Float(expr string) string
	// Func gives the engine's spelling of a function: least, greatest,
	// power, exp, ln, log10, sqrt, atan, floor, ceil, abs.
	Func(name string) string
	// Clock is how the engine writes moments.
	Clock() Clock
	// Classify sorts an error of the engine's drivers by its code.
	Classify(err error) Class
}

// Clock is how an engine writes moments in falldue's tables: timestamptz on
// PostgreSQL, DATETIME(6) in UTC on MySQL, MariaDB and TiDB, microseconds since 1970
// in an INTEGER on SQLite. All of them are UTC and none depends on the
// session's time zone or on how the driver was configured to parse times.
type Clock struct {
	// Now is the start of the running statement by the database's clock.
	Now string
	// Shift moves a moment by an expression that yields whole microseconds.
	Shift func(moment, micros string) string
	// Micros turns a moment into whole microseconds since 1970.
	Micros func(moment string) string
	// Moment turns whole microseconds since 1970 into a moment.
	Moment func(micros string) string
}

// Of returns the dialect of the named engine. Its error, for a name that is
// none of [Names], lists those.
func Of(name Name) (Dialect, error) {
	switch name {
	case Postgres:
		return postgres{}, nil
	case MySQL, MariaDB, TiDB:
		return mysql{name}, nil
	case SQLite:
		return sqlite{}, nil
	}
	return nil, fmt.Errorf("dialect: unknown engine %q; the engines are %v", name, Names)
}
