package dialect

// Class is what a database error means for whoever sent the statement.
type Class int

const (
	// Other is every error without a class of its own.
	Other Class = iota
	// Contention is a deadlock, a lock wait that ran out, a serialization or
	// certification failure, a busy database. The transaction did nothing and
	// may be run again, whole.
	Contention
	// Disconnected is a connection that broke, or a server that is starting,
	// stopping or full. Whether the statement took effect is not known.
	Disconnected
	// Unavailable is a server that takes no writes for now: read-only, disk full,
	// statement timeout, a limit that is reached. The statement did nothing.
	Unavailable
	// UniqueViolation is a violated unique index.
	UniqueViolation
	// UndefinedTable is a table that is not there: the migrations have not run.
	UndefinedTable
	// PreparedStatementMissing is a prepared statement that is not where it was prepared, or one
	// that somebody else prepared there: see [ErrTransactionPooling].
	PreparedStatementMissing
)

func (c Class) String() string {
	switch c {
	case Contention:
		return "contention"
	case Disconnected:
		return "disconnected"
	case Unavailable:
		return "unavailable"
	case UniqueViolation:
		return "unique violation"
	case UndefinedTable:
		return "undefined table"
	case PreparedStatementMissing:
		return "prepared statement missing"
	}
	return "other"
}
