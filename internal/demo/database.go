// Package demo has the shared parts of the demonstrations in examples: a temporary database, and a screen that is redrawn.
package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/connect"
)

// Open opens the database that dsn names. If dsn is empty, it opens a temporary SQLite file, which closeDB removes.
// used is dsn, or the DSN of that file.
func Open(ctx context.Context, dsn string) (db *sqlx.DB, used string, closeDB func() error, err error) {
	remove := func() error { return nil }
	if dsn == "" {
		folder, err := os.MkdirTemp("", "falldue-")
		if err != nil {
			return nil, "", nil, err
		}
		remove = func() error { return os.RemoveAll(folder) }
		dsn = "sqlite:" + filepath.Join(folder, "demo.db")
	}
	db, err = connect.Open(ctx, "", dsn)
	if err != nil {
		return nil, "", nil, errors.Join(err, remove())
	}
	return db, dsn, func() error { return errors.Join(db.Close(), remove()) }, nil
}

// DropTables drops falldue's tables whose names begin with prefix, and the tables prefix+more. It uses its own context,
// of 10 seconds, since the context of the run may have ended.
func DropTables(db *sqlx.DB, prefix string, more ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	names := []string{"tasks", "attempts", "policies", "progress", "steps", "permits", "uniques", "changes", "workers", "schedules", "flows", "edges", "minutes", "sample", "audit", "migrations"}
	for _, name := range append(more, names...) {
		if _, err := db.ExecContext(ctx, "drop table if exists "+prefix+name); err != nil {
			return err
		}
	}
	return nil
}
