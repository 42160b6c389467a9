package main

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/demo"
)

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

// dropTables drops all tables.
func dropTables(db *sqlx.DB) error { return demo.DropTables(db, "quickstart_", "orders") }

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
