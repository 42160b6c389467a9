package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/falldue/falldue/internal/dsn"
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

// ErrUnsupported is wrapped by the errors of [Probe] for a server that is too
// old or lacks something that falldue needs. The text names it and suggests a fix.
var ErrUnsupported = errors.New("database server not supported")

// Queryer is what [Probe] queries: a *sqlx.DB, *sql.DB, *sql.Conn or transaction.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Probe asks a server what it is and returns its description. Its error wraps
// [ErrUnsupported] for a server that falldue cannot work on.
func Probe(ctx context.Context, db Queryer) (Server, error) {
	var text string
	if err := db.QueryRowContext(ctx, "select version()").Scan(&text); err != nil {
		if (postgres{}).Classify(err) == PreparedStatementMissing {
			return Server{}, fmt.Errorf("%w (%w)", ErrTransactionPooling, err)
		}
		// Only SQLite has no version(). On other engines this query fails, too.
		if liteErr := db.QueryRowContext(ctx, "select sqlite_version()").Scan(&text); liteErr != nil {
			return Server{}, fmt.Errorf("dialect: ask the server for its version: %w", withoutDSN(err))
		}
		return probeSQLite(ctx, db, text)
	}
	switch {
	case strings.HasPrefix(text, "PostgreSQL "):
		return probePostgres(ctx, db, text)
	case strings.Contains(text, "MariaDB"):
		return probeMySQL(ctx, db, MariaDB, text)
	case strings.Contains(text, "TiDB"):
		return probeMySQL(ctx, db, TiDB, text)
	case versionOf(text) != (version{}) && !strings.Contains(text, "CockroachDB"):
		return probeMySQL(ctx, db, MySQL, text)
	}
	return Server{}, fmt.Errorf("%w: the server calls itself %q; falldue supports %v", ErrUnsupported, text, Names)
}

// withoutDSN hides the DSN that lib/pq shows when it cannot parse it as a URL.
func withoutDSN(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return dsn.Redact(u.URL, err)
	}
	return err
}

// postgresServer returns a server of a version that is new enough.
func postgresServer(text string) (Server, error) {
	if err := atLeast(Postgres, text, version{12, 0}, "LATERAL, materialized CTEs and log10"); err != nil {
		return Server{}, err
	}
	return serverOf(Postgres, text), nil
}

func probePostgres(ctx context.Context, db Queryer, text string) (Server, error) {
	s, err := postgresServer(text)
	if err == nil {
		err = probeSession(ctx, db, postgresOddEncoding)
	}
	if err != nil {
		return Server{}, err
	}
	pooled, err := sharesSessions(ctx, db)
	if err != nil || !pooled {
		return s, err
	}
	return PoolTransactions(ctx, db, s)
}

// mysqlServer returns a server of a version that is new enough.
func mysqlServer(name Name, text string) (Server, error) {
	oldest, why := version{8, 0}, "SKIP LOCKED and CHECK"
	if name == MariaDB {
		oldest = version{10, 6}
	}
	if err := atLeast(name, text, oldest, why); err != nil {
		return Server{}, err
	}
	return serverOf(name, text), nil
}

func probeMySQL(ctx context.Context, db Queryer, name Name, text string) (Server, error) {
	s, err := mysqlServer(name, text)
	if err != nil {
		return Server{}, err
	}
	if err := probeSession(ctx, db, s.Caps.OddSession); err != nil {
		return Server{}, err
	}
	var step int64
	if err := db.QueryRowContext(ctx, "select @@auto_increment_increment").Scan(&step); err != nil {
		return Server{}, fmt.Errorf("dialect: read the distance between ids: %w", err)
	}
	if !s.Caps.InsertReturning {
		s.Caps.IDStep = step
	}
	var variable, level string // the first one has the older name, on servers that have both
	if err := db.QueryRowContext(ctx, "show variables where variable_name in ('tx_isolation', 'transaction_isolation')").Scan(&variable, &level); err != nil {
		return Server{}, fmt.Errorf("dialect: read the session's isolation level: %w", err)
	}
	s.Caps.DirtyReads = level == "READ-UNCOMMITTED"
	return s, nil
}

// probeSession refuses a session that a query finds odd.
func probeSession(ctx context.Context, db Queryer, odd string) error {
	var what string
	if err := db.QueryRowContext(ctx, odd).Scan(&what); err != nil {
		return fmt.Errorf("dialect: read the session's settings: %w", err)
	}
	return OddSession(what)
}

// OddSession returns the error for what the query of [Caps.OddSession] has returned, or nil if that
// is empty. It wraps [ErrUnsupported].
func OddSession(what string) error {
	if what == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnsupported, what)
}

func probeSQLite(ctx context.Context, db Queryer, text string) (Server, error) {
	if err := atLeast(SQLite, text, version{3, 46}, "long formulas, whose parentheses an older parser does not hold, and exact numbers"); err != nil {
		return Server{}, err
	}
	var eight float64
	if err := db.QueryRowContext(ctx, "select power(2.0, 3.0) + floor(0.5) + atan(0.0)").Scan(&eight); err != nil {
		return Server{}, fmt.Errorf("%w: this build of SQLite has no math functions; use modernc.org/sqlite, or build yours with SQLITE_ENABLE_MATH_FUNCTIONS (%w)", ErrUnsupported, err)
	}
	return serverOf(SQLite, text), nil
}

// serverOf returns the default server of an engine with a version.
func serverOf(name Name, version string) Server {
	s, err := DefaultServer(name)
	if err != nil {
		panic(err) // the engine is missing in the table
	}
	s.Version = version
	return s
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
