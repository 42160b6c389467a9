package pgnotify_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/pgnotify"
)

// A worker that listens starts a task as soon as another process commits it.
func ExampleDSN() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	dsn := os.Getenv("DATABASE_URL")
	db, err := sqlx.Connect("pgx", dsn)
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = db.Close() }()

	q, err := falldue.New(db, falldue.Config{Notifications: falldue.Notifications{Listen: pgnotify.DSN(dsn)}})
	if err != nil {
		log.Panic(err)
	}
	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	falldue.Handle(q, greet, func(_ context.Context, t falldue.Task[string]) error {
		log.Println("hello", t.Args)
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
}

// A process that enqueues and runs no worker notifies the workers that listen.
func ExampleDSN_notify() {
	ctx := context.Background()
	db, err := sqlx.Connect("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = db.Close() }()

	q, err := falldue.New(db, falldue.Config{Notifications: falldue.Notifications{Mode: falldue.NotifyInTx}})
	if err != nil {
		log.Panic(err)
	}
	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	if _, err := greet.Enqueue(ctx, q, "Ada"); err != nil {
		log.Panic(err)
	}
}

// A worker behind a pooler in transaction mode listens by a connection to the server
// itself. With pgx the DSN of the pooler has default_query_exec_mode=exec.
func ExampleDSN_pooler() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	db, err := sqlx.Connect("pgx", os.Getenv("POOLER_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = db.Close() }()

	q, err := falldue.New(db, falldue.Config{
		TransactionPooling: true, // New finds out by itself unless the pool is small or busy
		Notifications:      falldue.Notifications{Listen: pgnotify.DSN(os.Getenv("DATABASE_URL"))},
	})
	if err != nil {
		log.Panic(err)
	}
	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	falldue.Handle(q, greet, func(_ context.Context, t falldue.Task[string]) error {
		log.Println("hello", t.Args)
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
}
