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
	// Refused is a server that takes no writes for now: read-only, disk full,
	// statement timeout, a limit that is reached. The statement did nothing.
	Refused
	// Duplicate is a violated unique index.
	Duplicate
	// NoTable is a table that is not there: the migrations have not run.
	NoTable
	// Strayed is a prepared statement that is not where it was prepared, or one
	// that somebody else prepared there: see [ErrShared].
	Strayed
)

func (c Class) String() string {
	switch c {
	case Contention:
		return "contention"
	case Disconnected:
		return "disconnected"
	case Refused:
		return "refused"
	case Duplicate:
		return "duplicate"
	case NoTable:
		return "no table"
	case Strayed:
		return "strayed"
	}
	return "other"
}
