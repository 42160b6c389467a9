// Package connect opens the database that the user of a command has named.
package connect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql" // driver mysql: MySQL and MariaDB
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"    // driver postgres
	_ "modernc.org/sqlite" // driver sqlite, without cgo

	"github.com/falldue/falldue/internal/dsn"
)

// The names of the drivers that Open supports, as registered with database/sql.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
	SQLite   = "sqlite"
)

var drivers = []string{Postgres, MySQL, SQLite}

// Open opens the database that name, a DSN, names and pings it. driver is the name of
// its driver. If driver is empty, the form of the DSN determines it:
//
//	postgres://user:password@host/database   postgres; also key=value …
//	mysql://user:password@host/database      mysql
//	user:password@tcp(host)/database         mysql; also @unix(socket)
//	sqlite:path                              sqlite, with the settings that falldue needs
//	path                                     the same, for a file that exists
//	file:path?settings                       sqlite, unchanged
//
// A word without a scheme that is no file is an error: SQLite would make a file of
// that name. The errors show no secrets of the DSN.
func Open(ctx context.Context, driver, name string) (*sqlx.DB, error) {
	driver, source, err := resolve(driver, name)
	if err != nil {
		return nil, err
	}
	db, err := sqlx.ConnectContext(ctx, driver, source)
	if errors.Is(err, pq.ErrSSLNotSupported) { // where pgx and psql continue without TLS
		return nil, fmt.Errorf("open the database with driver %s: %w; to connect without TLS, add sslmode=disable to the DSN", driver, dsn.Redact(source, err))
	}
	if err != nil && driver == SQLite && !strings.HasPrefix(name, "file:") {
		return nil, fmt.Errorf("open %s: %w", fileOf(name), dsn.Redact(source, err))
	}
	if err != nil {
		return nil, fmt.Errorf("open the database with driver %s: %w", driver, dsn.Redact(source, err))
	}
	return db, nil
}

// fileOf names the SQLite file of a DSN in errors, by its absolute path. The path is left out if the DSN might be for
// another driver and contain a password.
func fileOf(name string) string {
	path, marked := strings.CutPrefix(name, "sqlite:")
	unlikely := strings.ContainsAny(name, "@=") || schemePattern.MatchString(name)
	if marked {
		unlikely = strings.Contains(name, "@") && schemePattern.MatchString(name)
	}
	if abs, err := filepath.Abs(path); err == nil && !unlikely {
		return "the SQLite file " + abs
	}
	return "the SQLite file"
}

// OpenExisting is like Open, but it is an error if a file of SQLite does not exist: a command that only reads would
// make an empty database of each mistyped path. A DSN that begins with file: is left to its settings.
func OpenExisting(ctx context.Context, driver, name string) (*sqlx.DB, error) {
	as, _, err := resolve(driver, name)
	if err != nil {
		return nil, err
	}
	if as == SQLite && !strings.HasPrefix(name, "file:") {
		if _, err := os.Stat(strings.TrimPrefix(name, "sqlite:")); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s does not exist; \"falldue migrate up\" creates it, with the tables", fileOf(name))
		}
	}
	return Open(ctx, driver, name)
}

// Check returns the error that Open returns for a DSN whose driver is unknown or whose form is wrong. It opens nothing.
func Check(driver, name string) error {
	_, _, err := resolve(driver, name)
	return err
}

// resolve returns the driver for a DSN, and the DSN in the form that the driver
// accepts.
func resolve(driver, name string) (_, source string, err error) {
	if name == "" {
		return "", "", fmt.Errorf("the DSN is empty: must be %s", forms)
	}
	if driver == "" {
		if driver, err = driverOf(name); err != nil {
			return "", "", err
		}
	}
	switch {
	case !slices.Contains(drivers, driver):
		return "", "", fmt.Errorf("unknown driver %q; the drivers are %v", driver, drivers)
	case driver == SQLite && !strings.HasPrefix(name, "file:"):
		path := strings.TrimPrefix(name, "sqlite:")
		if path == "" {
			return "", "", fmt.Errorf("DSN %q: the path is missing: must be sqlite:path", name)
		}
		name = sqliteDSN(path)
		if path == ":memory:" {
			return "", "", errMemory
		}
	case driver == SQLite && memoryPattern.MatchString(name):
		return "", "", errMemory
	case driver == Postgres:
		for poolSetting.MatchString(name) {
			name = poolSetting.ReplaceAllString(name, "$1")
		}
	case driver == MySQL && strings.HasPrefix(name, "mysql://"):
		if name, err = mysqlDSN(name); err != nil {
			return "", "", err
		}
	}
	return driver, name, nil
}

// errMemory is the error for a database in memory, which this process would find empty.
var errMemory = errors.New("a SQLite database in memory exists only inside the process that opened it; name a file, such as sqlite:shop.db")

// memoryPattern matches the DSN of a SQLite database in memory.
var memoryPattern = regexp.MustCompile(`^file::memory:|[?&]mode=memory(&|$)`)

// poolSetting matches a setting of a DSN, of a URL or as key=value, that only pgx and its pool know. The
// driver would send it to the server, which refuses it.
var poolSetting = regexp.MustCompile(`([?&]|^|\s)(?:pool_(?:max_conns|min_conns|min_idle_conns|max_conn_lifetime|max_conn_lifetime_jitter|max_conn_idle_time|health_check_period)|default_query_exec_mode|statement_cache_capacity|description_cache_capacity)\s*=\s*[^&\s]*(?:[&\s]+|$)`)

// forms lists the forms of a DSN.
//
//nolint:gosec // this is not a password
const forms = "postgres://user:password@host/database, mysql://user:password@host/database, user:password@tcp(host)/database, sqlite:path, or the path of an existing SQLite file"

var (
	schemePattern  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	keywordPattern = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
	mysqlPattern   = regexp.MustCompile(`@(tcp|unix)?(\([^)]*\))?/`)
)

func driverOf(name string) (string, error) {
	switch {
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"):
		return Postgres, nil
	case strings.HasPrefix(name, "mysql://"):
		return MySQL, nil
	case strings.HasPrefix(name, "sqlite:"), strings.HasPrefix(name, "file:"), isFile(name):
		return SQLite, nil
	case schemePattern.MatchString(name):
		return "", fmt.Errorf("no driver for a DSN that begins with %s: must be %s", schemePattern.FindString(name), forms)
	case mysqlPattern.MatchString(name):
		return MySQL, nil
	case keywordPattern.MatchString(name):
		return Postgres, nil
	}
	return "", fmt.Errorf("the DSN is neither a URL nor the path of an existing file (a new SQLite file needs the prefix sqlite:): must be %s", forms)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// mysqlDSN returns a URL as the driver's DSN.
func mysqlDSN(name string) (string, error) {
	u, err := url.Parse(name)
	if err != nil {
		return "", dsn.Redact(name, err)
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	cfg.Passwd, _ = u.User.Password()
	source := cfg.FormatDSN()
	if u.RawQuery != "" {
		source += "?" + u.RawQuery
	}
	return source, nil
}

// sqliteDSN returns the DSN of a SQLite file that several processes may share. With
// its settings, readers and the writer do not block each other, and writers wait
// for each other. A transaction takes the write lock when it begins, because a
// read lock cannot always be upgraded later.
func sqliteDSN(path string) string {
	settings := url.Values{
		"_pragma": {"journal_mode(wal)", "busy_timeout(10000)", "synchronous(normal)"},
		"_txlock": {"immediate"},
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + settings.Encode()
}
