package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // MySQL and MariaDB
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"  // PostgreSQL
	_ "modernc.org/sqlite" // SQLite, without cgo

	"github.com/falldue/falldue"
)

// open opens the database that dsn names: a file of its own if it is empty,
// which closing removes.
func open(dsn string) (db *sqlx.DB, closeDB func() error, err error) {
	remove := func() error { return nil }
	if dsn == "" {
		folder, err := os.MkdirTemp("", "quickstart-")
		if err != nil {
			return nil, nil, err
		}
		remove = func() error { return os.RemoveAll(folder) }
		dsn = filepath.Join(folder, "shop.db")
	}
	driver, source := driverOf(dsn)
	db, err = sqlx.Connect(driver, source)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the %s database: %w", driver, err), remove())
	}
	return db, func() error { return errors.Join(db.Close(), remove()) }, nil
}

// driverOf tells the driver, and the data source name as that wants it, from
// what the user wrote.
func driverOf(dsn string) (driver, source string) {
	switch {
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"):
		return "postgres", dsn
	case strings.Contains(dsn, "@tcp("), strings.Contains(dsn, "@unix("):
		return "mysql", dsn
	case strings.HasPrefix(dsn, "file:"):
		return "sqlite", dsn
	}
	return "sqlite", sqliteDSN(strings.TrimPrefix(dsn, "sqlite:"))
}

// sqliteDSN names a SQLite file that a shop and its worker share: readers and
// the writer do not block each other, writers wait for one another, and a
// transaction takes the write lock when it begins, for a read lock could not
// always be raised later.
func sqliteDSN(path string) string {
	settings := url.Values{
		"_pragma": {"journal_mode(wal)", "busy_timeout(10000)", "synchronous(normal)"},
		"_txlock": {"immediate"},
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + settings.Encode()
}

// createTables makes the shop's table and falldue's, anew if an earlier run was
// cut short.
func createTables(ctx context.Context, db *sqlx.DB, queue *falldue.Queue) error {
	if err := dropTables(db); err != nil {
		return err
	}
	const orders = `create table quickstart_orders (number integer primary key, status varchar(20) not null)`
	if _, err := db.ExecContext(ctx, orders); err != nil {
		return err
	}
	return queue.Migrate(ctx)
}

// dropTables leaves nothing behind, whether the run ended or was stopped.
func dropTables(db *sqlx.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, name := range []string{"orders", "tasks", "attempts", "policies", "migrations"} {
		if _, err := db.ExecContext(ctx, "drop table if exists quickstart_"+name); err != nil {
			return err
		}
	}
	return nil
}

// inTx commits what fn does, or none of it.
func inTx(ctx context.Context, db *sqlx.DB, fn func(tx *sqlx.Tx) error) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
