// Package connect opens the database that the user of a command has named.
package connect

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	_ "github.com/go-sql-driver/mysql" // driver mysql: MySQL and MariaDB
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"  // driver postgres
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

// Open opens the database that name, a DSN, names and pings it. driver is the name of its
// driver. If driver is empty, the form of dsn determines it:
//
//	postgres://user:password@host/database   postgres; also key=value …
//	user:password@tcp(host)/database         mysql; also @unix(socket)
//	file:path?settings                       sqlite, unchanged
//	path, sqlite:path                        sqlite, with the settings that falldue needs
//
// If the driver or the form of dsn is unknown, the error lists those that are
// allowed. That error does not contain dsn, which may have a password in it.
func Open(ctx context.Context, driver, name string) (*sqlx.DB, error) {
	driver, source, err := resolve(driver, name)
	if err != nil {
		return nil, err
	}
	db, err := sqlx.ConnectContext(ctx, driver, source)
	if err != nil {
		return nil, fmt.Errorf("open the database by driver %s: %w", driver, dsn.Redact(source, err))
	}
	return db, nil
}

// resolve returns the driver for a DSN, and the DSN in the form that the driver
// accepts.
func resolve(driver, dsn string) (_, source string, err error) {
	if driver == "" {
		if driver, err = driverOf(dsn); err != nil {
			return "", "", err
		}
	}
	switch {
	case dsn == "":
		return "", "", fmt.Errorf("the DSN is empty; allowed are %s", forms)
	case !slices.Contains(drivers, driver):
		return "", "", fmt.Errorf("unknown driver %q; the drivers are %v", driver, drivers)
	case driver == SQLite && !strings.HasPrefix(dsn, "file:"):
		dsn = sqliteDSN(strings.TrimPrefix(dsn, "sqlite:"))
	}
	return driver, dsn, nil
}

// forms lists the forms of a DSN.
//
//nolint:gosec // this is not a password
const forms = "postgres://user:password@host/database, user:password@tcp(host)/database, and the path of a SQLite file"

var (
	schemePattern  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	keywordPattern = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
)

func driverOf(dsn string) (string, error) {
	switch {
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"), keywordPattern.MatchString(dsn):
		return Postgres, nil
	case strings.Contains(dsn, "@tcp("), strings.Contains(dsn, "@unix("):
		return MySQL, nil
	case schemePattern.MatchString(dsn) && !strings.HasPrefix(dsn, "file://"):
		// The error must not show the whole DSN, which may contain a password.
		return "", fmt.Errorf("no driver for a DSN that begins with %s; allowed are %s", schemePattern.FindString(dsn), forms)
	}
	return SQLite, nil
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
