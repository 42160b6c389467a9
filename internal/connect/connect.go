// Package connect opens the database that a user of a command names.
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
)

// The drivers that Open knows, by the names that database/sql has for them.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
	SQLite   = "sqlite"
)

var drivers = []string{Postgres, MySQL, SQLite}

// Open opens the database that dsn names and checks that it answers. driver is
// the name of its driver; if it is empty, dsn tells it:
//
//	postgres://user:password@host/database   or key=value …: postgres
//	user:password@tcp(host)/database         or @unix(socket): mysql
//	file:path?settings                       sqlite, as it is
//	path, sqlite:path                        sqlite, with the settings falldue needs
//
// The error for a dsn or a driver that is none of these lists them.
func Open(ctx context.Context, driver, dsn string) (*sqlx.DB, error) {
	driver, source, err := resolve(driver, dsn)
	if err != nil {
		return nil, err
	}
	db, err := sqlx.ConnectContext(ctx, driver, source)
	if err != nil {
		return nil, fmt.Errorf("open the database by driver %s: %w", driver, err)
	}
	return db, nil
}

// resolve returns the driver of a DSN, and the DSN as that driver wants it.
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

// forms says what a DSN may look like.
//
//nolint:gosec // no password: the word stands for one
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
		// The whole DSN may hold a password.
		return "", fmt.Errorf("a DSN that begins with %s tells no driver; allowed are %s", schemePattern.FindString(dsn), forms)
	}
	return SQLite, nil
}

// sqliteDSN names a SQLite file that several processes share: readers and the
// writer do not block each other, writers wait for one another, and a
// transaction takes the write lock when it begins, for a read lock could not
// always be raised later.
func sqliteDSN(path string) string {
	settings := url.Values{
		"_pragma": {"journal_mode(wal)", "busy_timeout(10000)", "synchronous(normal)"},
		"_txlock": {"immediate"},
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + settings.Encode()
}
