package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/falldue/falldue/internal/dsn"
)

// Server describes a database server as [Probe] found it: its dialect, its version and its features.
type Server struct {
	Dialect
	// Version is the server's own text, such as "10.11.6-MariaDB".
	Version string
	// Caps describes the features of the server.
	Caps Caps
}

// ErrUnsupported means that a server is too old, lacks a feature that falldue needs, or has an
// unsuitable setting. [Probe] returns it, wrapped. The text names the feature or setting, and suggests a fix.
var ErrUnsupported = errors.New("database server not supported")

// Queryer is the argument of [Probe]: a *sqlx.DB, *sql.DB, *sql.Conn or transaction.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Probe queries the engine, version and settings of a server, and returns a description of the server. The error wraps
// [ErrUnsupported] if falldue cannot work with the server or with the session's settings.
func Probe(ctx context.Context, db Queryer) (Server, error) {
	var text string
	if err := db.QueryRowContext(ctx, "select version() limit 1").Scan(&text); err != nil { // MySQL's sql_select_limit may be 0
		if (postgres{}).Classify(err) == PreparedStatementMissing {
			return Server{}, fmt.Errorf("%w (%w)", ErrTransactionPooling, err)
		}
		// Only SQLite has no version(). On other engines this query fails, too.
		if liteErr := db.QueryRowContext(ctx, "select sqlite_version()").Scan(&text); liteErr != nil {
			return Server{}, fmt.Errorf("dialect: ask the server for its version: %w", dsn.Hide(err))
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

// postgresServer returns a server of a version that is new enough.
func postgresServer(text string) (Server, error) {
	if err := atLeast(Postgres, text, version{12, 0, 0}, "LATERAL, materialized CTEs and log10"); err != nil {
		return Server{}, err
	}
	return serverOf(Postgres, text), nil
}

func probePostgres(ctx context.Context, db Queryer, text string) (Server, error) {
	s, err := postgresServer(text)
	if err == nil {
		err = probeSession(ctx, db, s.Caps.OddSession)
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
	oldest, why := version{8, 0, 0}, "SKIP LOCKED and CHECK"
	switch name {
	case MySQL:
		oldest, why = version{8, 0, 16}, "SKIP LOCKED, LATERAL and CHECK"
	case MariaDB:
		oldest = version{10, 6, 0}
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
	var variable string // Vitess evaluates it, and leaves version() to MySQL
	if err := db.QueryRowContext(ctx, "select @@version limit 1").Scan(&variable); err != nil {
		return Server{}, fmt.Errorf("dialect: read the server's version: %w", err)
	}
	if strings.Contains(variable, "Vitess") {
		s.Caps.JSONLateral = false // vtgate plans no JSON_TABLE
		s.Caps.OddSession = strings.Replace(s.Caps.OddSession, mysqlSelectLimit, vitessSelectLimit, 1)
	}
	if err := probeSession(ctx, db, s.Caps.OddSession); err != nil {
		return Server{}, err
	}
	var step int64
	if err := db.QueryRowContext(ctx, "select @@auto_increment_increment, @@max_allowed_packet").Scan(&step, &s.Caps.MaxPacket); err != nil {
		return Server{}, fmt.Errorf("dialect: read auto_increment_increment and max_allowed_packet: %w", err)
	}
	if !s.Caps.InsertReturning {
		s.Caps.IDStep = step
		s.Caps.refuseLater("@@auto_increment_increment <> "+strconv.FormatInt(step, 10), "auto_increment_increment")
	}
	if name == TiDB {
		if s.Caps.MaxRow, err = tidbMaxRow(ctx, db); err != nil {
			return Server{}, fmt.Errorf("dialect: read the maximum size of a row: %w", err)
		}
	}
	var level string // the first one has the older name, on servers that have both
	if err := db.QueryRowContext(ctx, "show variables where variable_name in ('tx_isolation', 'transaction_isolation')").Scan(&variable, &level); err != nil {
		return Server{}, fmt.Errorf("dialect: read the session's isolation level: %w", err)
	}
	if s.Caps.DirtyReads = level == "READ-UNCOMMITTED"; !s.Caps.DirtyReads {
		s.Caps.refuseLater("@@"+variable+" = 'READ-UNCOMMITTED'", variable)
	}
	return s, nil
}

// tidbMaxRow returns the maximum size of a row on TiDB: a session's variable or, if the variable is 0 or the release lacks
// it, a setting of the server.
func tidbMaxRow(ctx context.Context, db Queryer) (int64, error) {
	var name string
	var row int64
	err := db.QueryRowContext(ctx, "show variables where variable_name = 'tidb_txn_entry_size_limit'").Scan(&name, &row)
	if row > 0 || err != nil && !errors.Is(err, sql.ErrNoRows) {
		return row, err
	}
	var config []byte
	err = db.QueryRowContext(ctx, "show variables where variable_name = 'tidb_config'").Scan(&name, &config)
	if errors.Is(err, sql.ErrNoRows) { // hidden, as in TiDB's security enhanced mode
		return 6 << 20, nil // TiDB's default
	}
	var settings struct {
		Performance struct {
			Row int64 `json:"txn-entry-size-limit"`
		} `json:"performance"`
	}
	if err == nil {
		err = json.Unmarshal(config, &settings)
	}
	return settings.Performance.Row, err
}

// refuseLater makes sessions odd in which a variable fulfils a condition: Probe has read another value.
func (c *Caps) refuseLater(condition, variable string) {
	c.OddSession = strings.TrimSuffix(c.OddSession, oddEnd) + " when " + condition + " then concat('" + variable + " is ', @@" + variable +
		", ', but had another value when falldue.New was called; restore it or restart the program')" + oddEnd
}

// probeSession refuses a session that a query finds odd.
func probeSession(ctx context.Context, db Queryer, odd string) error {
	var what string
	if err := db.QueryRowContext(ctx, odd).Scan(&what); err != nil {
		return fmt.Errorf("dialect: read the session's settings: %w", err)
	}
	return OddSession(what)
}

// OddSession returns an error for the text that the query [Caps.OddSession] has returned, or nil if the
// text is empty. The error wraps [ErrUnsupported].
func OddSession(what string) error {
	if what == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnsupported, what)
}

func probeSQLite(ctx context.Context, db Queryer, text string) (Server, error) {
	if err := atLeast(SQLite, text, version{3, 46, 0}, "long formulas, whose parentheses exceed the limit of older parsers, and exact numbers"); err != nil {
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

type version struct{ major, minor, patch int }

// String is as in "12.0", or "8.0.16".
func (v version) String() string {
	if v.patch == 0 {
		return fmt.Sprintf("%d.%d", v.major, v.minor)
	}
	return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
}

var versionPattern = regexp.MustCompile(`(\d+)\.(\d+)(?:\.(\d+))?`)

// versionOf finds the first "major.minor", or "major.minor.patch", in a server's version text.
func versionOf(text string) version {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return version{}
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	patch, _ := strconv.Atoi(m[3])
	return version{major, minor, patch}
}

func atLeast(name Name, text string, oldest version, why string) error {
	v := versionOf(text)
	if cmp.Or(cmp.Compare(v.major, oldest.major), cmp.Compare(v.minor, oldest.minor), cmp.Compare(v.patch, oldest.patch)) >= 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is %q; falldue needs %v or newer, for %s", ErrUnsupported, name, text, oldest, why)
}
