package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/connect"
)

// open opens the database that dsn names. If dsn is empty, it opens a temporary
// file, which closeDB removes.
func open(ctx context.Context, dsn string) (db *sqlx.DB, closeDB func() error, err error) {
	remove := func() error { return nil }
	if dsn == "" {
		folder, err := os.MkdirTemp("", "quickstart-")
		if err != nil {
			return nil, nil, err
		}
		remove = func() error { return os.RemoveAll(folder) }
		dsn = "sqlite:" + filepath.Join(folder, "shop.db")
	}
	db, err = connect.Open(ctx, "", dsn)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return db, func() error { return errors.Join(db.Close(), remove()) }, nil
}

// createTables creates the tables of the shop and of falldue. It drops those that
// an interrupted run has left.
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

// dropTables drops all tables. It has its own context, since the one of the run may
// have ended.
func dropTables(db *sqlx.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, name := range []string{"orders", "tasks", "attempts", "policies", "progress", "steps", "permits", "uniques", "changes", "workers", "schedules", "flows", "edges", "minutes", "sample", "audit", "migrations"} {
		if _, err := db.ExecContext(ctx, "drop table if exists quickstart_"+name); err != nil {
			return err
		}
	}
	return nil
}

// inTx runs fn in a transaction. It rolls back if fn returns an error.
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
