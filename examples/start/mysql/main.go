// Shop inserts an order together with the task that sends its invoice, and runs the task.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// Invoice has the arguments of a task, which are stored as JSON.
type Invoice struct{ Order int64 }

// SendInvoice is a kind of task. Its delays grow from 1 second to 1 hour over 12 retries, and then stay at 1 hour.
var SendInvoice = falldue.NewKind[Invoice]("invoice.send", falldue.KindConfig{
	Policy: backoff.Geometric(time.Second, time.Hour, 12).WithMaxAttempts(20),
})

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db := sqlx.MustConnect("mysql", os.Getenv("DATABASE_DSN"))
	defer db.Close()
	db.MustExec("create table if not exists orders (id bigint primary key auto_increment, item text)")
	queue, err := falldue.New(db, falldue.Config{})
	if err != nil {
		return err
	}
	if err := queue.Migrate(ctx); err != nil { // creates falldue's tables
		return err
	}

	falldue.Handle(queue, SendInvoice, func(_ context.Context, t falldue.Task[Invoice]) error {
		if t.Attempt == 1 {
			return errors.New("the mail server is busy") // so the task is retried
		}
		fmt.Printf("attempt %d: sent the invoice of order %d\n", t.Attempt, t.Args.Order)
		return nil
	})
	if err := placeOrder(ctx, db, queue, "tea"); err != nil {
		return err
	}
	return queue.Run(ctx) // until Ctrl-C or SIGTERM; then it waits for running handlers
}

// placeOrder inserts an order and its task in one transaction: both are committed, or neither.
func placeOrder(ctx context.Context, db *sqlx.DB, queue *falldue.Queue, item string) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	result, err := tx.ExecContext(ctx, "insert into orders (item) values (?)", item)
	if err != nil {
		return err
	}
	order, err := result.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := SendInvoice.EnqueueTx(ctx, queue, tx, Invoice{Order: order}); err != nil {
		return err
	}
	return tx.Commit()
}
