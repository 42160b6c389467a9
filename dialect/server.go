package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Server is a database server as [Probe] found it: its dialect, its version
// and what it can do.
type Server struct {
	Dialect
	// Version is the server's own text, such as "10.11.6-MariaDB".
	Version string
	// Caps is what the server can do.
	Caps Caps
}

// Caps is what a server can do, asked of the server itself and never guessed
// from the name of a driver.
type Caps struct {
	// SkipLocked: SELECT … FOR UPDATE SKIP LOCKED. It keeps workers out of
	// each other's way; no promise of falldue rests on it.
	SkipLocked bool
	// LockRows: SELECT … FOR UPDATE. Without it (SQLite) a write transaction
	// holds the whole database.
	LockRows bool
	// UpdateReturning: UPDATE and DELETE … RETURNING, also inside WITH.
	UpdateReturning bool
	// InsertReturning: INSERT … RETURNING.
	InsertReturning bool
	// Lateral: a subquery in FROM may use what stands before it.
	Lateral bool
	// Notify: LISTEN and NOTIFY.
	Notify bool
	// Copy: COPY … FROM STDIN, which not every driver can stream.
	Copy bool
	// LooseScan: GROUP BY over an index prefix jumps from group to group.
	LooseScan bool
	// LaneExpression: the index of tasks has a lane in one text, since comparing columns
	// one by one costs the engine more than making that text.
	LaneExpression bool
	// JoinHints: INL_JOIN(t) makes a join look up the rows of t by their key.
	// Without it TiDB goes by statistics, which may be of a time when the table
	// was empty, and then reads all of it for each batch.
	JoinHints bool
	// CachesStatistics: it goes by what it counted when it opened a table, perhaps when that
	// was empty, until it is told to count again. Sweeps would read all that waits.
	CachesStatistics bool
	// Rows is how a batch of rows enters one statement.
	Rows RowSource
	// IDStep is the distance between two automatic ids of one INSERT; 0 where
	// InsertReturning tells the ids.
	IDStep int64
}

// RowSource is how a batch of rows enters one statement.
type RowSource int

const (
	// Arrays: one array parameter a column, unnested.
	Arrays RowSource = iota
	// Unions: a parameter a value, each row a SELECT.
	Unions
	// Values: a parameter a value, the rows of VALUES.
	Values
)

// Grows tells whether a statement is longer the more rows enter it.
func (r RowSource) Grows() bool { return r != Arrays }

// ErrUnsupported is wrapped by the errors of [Probe] for a server that is too
// old or lacks something falldue needs. The text says which and what to do.
var ErrUnsupported = errors.New("database server not supported")

// Queryer is what Probe asks: *sqlx.DB, *sql.DB, *sql.Conn, a transaction.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Probe asks a server what it is and what it can do. It returns an error that
// wraps [ErrUnsupported] where falldue cannot work on it.
func Probe(ctx context.Context, db Queryer) (Server, error) {
	var text string
	if err := db.QueryRowContext(ctx, "select version()").Scan(&text); err != nil {
		if (postgres{}).Classify(err) == PreparedStatementMissing {
			return Server{}, fmt.Errorf("%w (%w)", ErrTransactionPooling, err)
		}
		// SQLite alone has no version(); any other failure shows here again.
		if liteErr := db.QueryRowContext(ctx, "select sqlite_version()").Scan(&text); liteErr != nil {
			return Server{}, fmt.Errorf("dialect: ask the server for its version: %w", err)
		}
		return probeSQLite(ctx, db, text)
	}
	switch {
	case strings.HasPrefix(text, "PostgreSQL "):
		s, err := probePostgres(text)
		if err != nil {
			return s, err
		}
		return s, ownSession(ctx, db)
	case strings.Contains(text, "MariaDB"):
		return probeMySQL(ctx, db, MariaDB, text)
	case strings.Contains(text, "TiDB"):
		return probeMySQL(ctx, db, TiDB, text)
	case versionOf(text) != (version{}) && !strings.Contains(text, "CockroachDB"):
		return probeMySQL(ctx, db, MySQL, text)
	}
	return Server{}, fmt.Errorf("%w: the server calls itself %q; falldue speaks %v", ErrUnsupported, text, Names)
}

func probePostgres(text string) (Server, error) {
	if err := atLeast(Postgres, text, version{12, 0}, "LATERAL, materialized CTEs and log10"); err != nil {
		return Server{}, err
	}
	return defaultServer(Postgres, text), nil
}

func probeMySQL(ctx context.Context, db Queryer, name Name, text string) (Server, error) {
	oldest, why := version{8, 0}, "SKIP LOCKED and CHECK"
	if name == MariaDB {
		oldest = version{10, 6}
	}
	if err := atLeast(name, text, oldest, why); err != nil {
		return Server{}, err
	}
	s := defaultServer(name, text)
	if !s.Caps.InsertReturning {
		if err := db.QueryRowContext(ctx, "select @@auto_increment_increment").Scan(&s.Caps.IDStep); err != nil {
			return Server{}, fmt.Errorf("dialect: read auto_increment_increment: %w", err)
		}
	}
	return s, nil
}

func probeSQLite(ctx context.Context, db Queryer, text string) (Server, error) {
	if err := atLeast(SQLite, text, version{3, 38}, "RETURNING and UPDATE FROM"); err != nil {
		return Server{}, err
	}
	var eight float64
	if err := db.QueryRowContext(ctx, "select power(2.0, 3.0) + floor(0.5) + atan(0.0)").Scan(&eight); err != nil {
		return Server{}, fmt.Errorf("%w: this build of SQLite has no math functions; use modernc.org/sqlite, or build yours with SQLITE_ENABLE_MATH_FUNCTIONS (%w)", ErrUnsupported, err)
	}
	return defaultServer(SQLite, text), nil
}

// DefaultServer is a server of an engine as Probe finds it where nothing is out of
// the ordinary: for text that is made without a server, such as a dump.
func DefaultServer(name Name) (Server, error) {
	if _, err := Of(name); err != nil {
		return Server{}, err
	}
	return defaultServer(name, ""), nil
}

func defaultServer(name Name, version string) Server {
	switch name {
	case Postgres:
		return Server{Dialect: postgres{}, Version: version, Caps: Caps{
			SkipLocked: true, LockRows: true, UpdateReturning: true, InsertReturning: true, Lateral: true, Notify: true, Copy: true, LaneExpression: true, Rows: Arrays,
		}}
	case MySQL:
		return Server{Dialect: mysql{name}, Version: version, Caps: Caps{
			SkipLocked: true, LockRows: true, LooseScan: true, Rows: Unions, IDStep: 1,
		}}
	case MariaDB:
		return Server{Dialect: mysql{name}, Version: version, Caps: Caps{
			SkipLocked: true, LockRows: true, LooseScan: true, CachesStatistics: true, Rows: Unions, InsertReturning: true,
		}}
	case TiDB:
		// It parses SKIP LOCKED and then locks nothing. Its GROUP BY does not
		// jump, but it knows no recursion with an ORDER BY, which could.
		return Server{Dialect: mysql{name}, Version: version, Caps: Caps{
			LockRows: true, LooseScan: true, JoinHints: true, Rows: Unions, IDStep: 1,
		}}
	default:
		return Server{Dialect: sqlite{}, Version: version, Caps: Caps{UpdateReturning: true, InsertReturning: true, Rows: Values}}
	}
}

type version struct{ major, minor int }

var versionPattern = regexp.MustCompile(`(\d+)\.(\d+)`)

// versionOf finds the first "major.minor" in a server's version text.
func versionOf(text string) version {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return version{}
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return version{major, minor}
}

func atLeast(name Name, text string, oldest version, why string) error {
	v := versionOf(text)
	if v.major > oldest.major || v.major == oldest.major && v.minor >= oldest.minor {
		return nil
	}
	return fmt.Errorf("%w: %s is %q; falldue needs %d.%d or newer, for %s", ErrUnsupported, name, text, oldest.major, oldest.minor, why)
}
