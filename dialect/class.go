package dialect

// Class is the meaning of a database error for the program that sent the statement.
type Class int

const (
	// Other is every error without a specific class.
	Other Class = iota
	// Contention is a deadlock, a lock wait timeout, a serialization or
	// certification failure, or a busy database. The transaction was rolled back
	// and may be run again as a whole.
	Contention
	// Disconnected is a connection that broke, or a server that is starting or stopping, or has no free connection.
	// Whether the statement took effect is not known.
	Disconnected
	// Unavailable is a server that accepts no writes at the moment: its disk is
	// full, a statement timed out, or a limit is reached. The statement had no
	// effect.
	Unavailable
	// ReadOnly is a server, or a session, that allows no writes. The server may be
	// a primary that has become a replica, and a new connection may lead to its
	// successor. The statement had no effect.
	ReadOnly
	// Unencodable is a text with characters that the encoding of the connection, or of the
	// database, lacks. The statement had no effect.
	Unencodable
	// UniqueViolation is a violated unique index.
	UniqueViolation
	// UndefinedTable is a table that does not exist: the migrations have not run.
	UndefinedTable
	// PreparedStatementMissing is a prepared statement that the session does not have, or that another process prepared
	// with the same name: see [ErrTransactionPooling].
	PreparedStatementMissing
	// StatementStale is a prepared statement that no longer fits the tables. The statement had no effect, and works again
	// when it is prepared anew.
	StatementStale
)

func (c Class) String() string {
	switch c {
	case Contention:
		return "contention"
	case Disconnected:
		return "disconnected"
	case Unavailable:
		return "unavailable"
	case ReadOnly:
		return "read-only"
	case Unencodable:
		return "unencodable"
	case UniqueViolation:
		return "unique violation"
	case UndefinedTable:
		return "undefined table"
	case PreparedStatementMissing:
		return "prepared statement missing"
	case StatementStale:
		return "statement stale"
	}
	return "other"
}
