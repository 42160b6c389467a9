package pgxqueue_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/pgnotify"
	"github.com/falldue/falldue/pgxqueue"
)

// A worker on a pool of pgx.
func ExampleNew() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer pool.Close()

	q, err := pgxqueue.New(pool, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	if err := q.Migrate(ctx); err != nil {
		log.Panic(err)
	}
	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	falldue.Handle(q, greet, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println("hello", t.Args)
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
}

// A worker behind a pooler in transaction mode, which listens by a connection to the server
// itself.
func ExampleNew_pooler() {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer pool.Close()

	directDSN := os.Getenv("DIRECT_DATABASE_URL")
	q, err := pgxqueue.New(pool, falldue.Config{Notifications: falldue.Notifications{Listen: pgnotify.DSN(directDSN)}})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(q.Engine())
}

// InvoiceArgs are the arguments of tasks that send an invoice.
type InvoiceArgs struct {
	Order int `json:"order"`
}

// SendInvoice is the kind of those tasks.
var SendInvoice = falldue.NewKind[InvoiceArgs]("send-invoice", falldue.KindConfig{})

// PlaceOrder stores an order and the task that sends its invoice, or neither.
func PlaceOrder(ctx context.Context, pool *pgxpool.Pool, q *falldue.Queue, number int) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders (number) values ($1)", number); err != nil {
			return err
		}
		_, err := SendInvoice.EnqueueTx(ctx, q, pgxqueue.Tx(tx), InvoiceArgs{Order: number})
		return err
	})
}

// An order and its task are stored together, or neither is. So are what a handler writes
// and the end of its task.
func ExampleTx() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer pool.Close()
	q, err := pgxqueue.New(pool, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	if err := PlaceOrder(ctx, pool, q, 42); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, SendInvoice, func(ctx context.Context, t falldue.Task[InvoiceArgs]) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "update orders set invoiced = true where number = $1", t.Args.Order); err != nil {
				return err
			}
			return t.DoneTx(ctx, pgxqueue.Tx(tx))
		})
	})
}
