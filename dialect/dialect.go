// Package dialect describes database engines: how each engine writes names,
// parameters, numbers and times in SQL ([Dialect]), the meaning of driver
// errors ([Class]), the features of a server ([Caps], [Server]), and the names of
// falldue's tables ([Tables]). falldue's SQL statements are in other packages.
package dialect

// Name is the name of an engine, as the command line and the folders of
// migrations and golden files spell it.
type Name string

// Dialect is how one engine writes SQL and reports errors. The methods that
// return SQL take SQL as arguments: never pass text from a user to them, except
// a name to Quote.
type Dialect interface {
	// Name is the engine's name.
	Name() Name
	// Quote returns ident as a quoted identifier, in which quotes are doubled.
	Quote(ident string) string
	// Placeholder returns the SQL for the i-th parameter of a statement, counted from 1.
	Placeholder(i int) string
	// Literal returns v as a literal of the engine's double precision type. v must be finite.
	Literal(v float64) string
	// Cast converts expr to a type. expr is a column, a parameter, a literal or a function call.
	Cast(expr string, to Type) string
	// Func returns the engine's spelling of a function: least, greatest,
	// power, exp, ln, log10, sqrt, atan, floor, ceil, abs.
	Func(name string) string
	// Clock is how the engine writes moments.
	Clock() Clock
	// Classify returns the meaning of an error of the engine's drivers, by its code or its
	// type. It returns [Other] for an error that has neither, such as ErrInvalidConn of
	// go-sql-driver/mysql: see [Caps.LossWithoutCode].
	Classify(err error) Class
}

// Type is a type to which [Dialect.Cast] converts.
type Type int

// The types.
const (
	// Double is double precision.
	Double Type = iota + 1
	// Int is a whole number of 64 bits.
	Int
	// Text is text of any length.
	Text
	// JSON is the type of the columns for JSON documents, cast from text. If these columns have a text type, Cast returns
	// the expression unchanged.
	JSON
)

// Clock is how an engine writes moments in falldue's tables: timestamptz on PostgreSQL, DATETIME(6) in UTC on MySQL,
// MariaDB and TiDB, microseconds since 1970 in an INTEGER on SQLite. All moments are in UTC. They depend neither on the
// session's time zone nor on how the driver parses times.
type Clock struct {
	// Now is the start of the running statement by the database's clock.
	Now string
	// Shift moves a moment by an expression that yields whole microseconds.
	Shift func(moment, micros string) string
	// Micros turns a moment into whole microseconds since 1970.
	Micros func(moment string) string
	// Moment turns whole microseconds since 1970 into a moment.
	Moment func(micros string) string
	// Due returns the condition that a delay has passed since the moment in column. The column belongs to a user's own
	// table, not to a table of falldue. The delay is passed both as whole microseconds and as seconds in double precision,
	// and Due uses one of them. If utc is set, the values of a column without a time zone are in UTC, and otherwise in the
	// time zone of the session.
	Due func(column, micros, seconds string, utc bool) string
}
