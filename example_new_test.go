package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// New asks the database which engine it is. It refuses invalid settings; the
// error says what is allowed.
func ExampleNew() {
	db, closeDB := openDB() // a *sqlx.DB
	defer closeDB()

	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(q.Engine())

	_, err = falldue.New(db, falldue.Config{Lease: time.Millisecond})
	fmt.Println(errors.Is(err, falldue.ErrInvalid), err)
	// Output:
	// sqlite
	// true falldue: invalid: Lease 1ms: must be 1s to 24h0m0s
}

// A worker needs a pool of some connections, which stay open.
func ExampleNew_pool() {
	db, closeDB := openDB() // a *sqlx.DB
	defer closeDB()

	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(q.Engine(), db.Stats().MaxOpenConnections)
	// Output: sqlite 20
}

// Config.TransactionPooling says that a pooler in transaction mode is in front of the server, such as
// PgBouncer. Only PostgreSQL may be behind one.
func ExampleNew_pooler() {
	db, closeDB := openDB() // of SQLite here
	defer closeDB()

	q, err := falldue.New(db, falldue.Config{TransactionPooling: true})
	fmt.Println(q == nil, err)
	// Output: true falldue: database server not supported: sqlite behind a pooler in transaction mode; TransactionPooling is only for PostgreSQL
}

// Migrate creates the tables. Every process may call it when it starts; it does
// nothing where the tables are up to date.
func ExampleQueue_Migrate() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()

	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})

	_, err = greet.Enqueue(ctx, q, "Ada")
	fmt.Println("without tables:", errors.Is(err, falldue.ErrNotMigrated))

	if err := q.Migrate(ctx); err != nil {
		log.Panic(err)
	}
	_, err = greet.Enqueue(ctx, q, "Ada")
	fmt.Println("with tables:", err)
	// Output:
	// without tables: true
	// with tables: <nil>
}

// Migrations gives more control than Migrate. A health check, for example, can
// ask whether a migration is pending.
func ExampleQueue_Migrations() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()

	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	m, err := q.Migrations()
	if err != nil {
		log.Panic(err)
	}
	pending := func() bool {
		list, err := m.Status(ctx)
		if err != nil {
			log.Panic(err)
		}
		for _, migration := range list {
			if !migration.Applied {
				return true
			}
		}
		return false
	}

	fmt.Println("pending:", pending())
	if _, err := m.Up(ctx); err != nil {
		log.Panic(err)
	}
	fmt.Println("pending:", pending())
	// Output:
	// pending: true
	// pending: false
}

// A worker works only on the queues that its configuration names. Here the queue
// invoices has the default concurrency, and the queue reports runs one task at a
// time.
func ExampleConfig() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{
		Queues: map[string]falldue.QueueConfig{
			"invoices": {},
			"reports":  {Concurrency: 1, MaxPrefetch: -1}, // claim a report only when no other one runs
		},
		Concurrency:     20,                  // for each queue that does not set its own
		ShutdownTimeout: 10 * time.Second,    // running handlers may take this long when Run ends
		DoneRetention:   24 * time.Hour,      // keep done tasks for a day
		DeadRetention:   30 * 24 * time.Hour, // and dead and cancelled ones for 30
	})
	defer closeQueue()

	report := falldue.NewKind[string]("report.build", falldue.KindConfig{Queue: "reports"})
	falldue.Handle(q, report, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Printf("queue %s: report of %s\n", t.Queue, t.Args)
		stop() // so that this example ends
		return nil
	})
	receipt, err := report.Enqueue(ctx, q, "March")
	if err != nil {
		log.Panic(err)
	}
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("still in the table:", task.State)
	// Output:
	// queue reports: report of March
	// still in the table: done
}

// openDB opens a new SQLite database, where an application would open its own.
// The function that it returns closes and deletes it.
func openDB() (db *sqlx.DB, closeDB func()) {
	folder, err := os.MkdirTemp("", "falldue-example-")
	if err != nil {
		log.Panic(err)
	}
	db, err = sqlx.Connect("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "shop.db"))+
		"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		log.Panic(err)
	}
	return db, func() {
		if err := db.Close(); err != nil {
			log.Panic(err)
		}
		if err := os.RemoveAll(folder); err != nil {
			log.Panic(err)
		}
	}
}

// newQueue makes a queue on db and creates its tables, as ExampleQueue_Migrate shows.
func newQueue(db *sqlx.DB, cfg falldue.Config) *falldue.Queue {
	q, err := falldue.New(db, cfg)
	if err != nil {
		log.Panic(err)
	}
	if err := q.Migrate(context.Background()); err != nil {
		log.Panic(err)
	}
	return q
}

// openQueue makes a queue on a database that only it uses.
func openQueue(cfg falldue.Config) (q *falldue.Queue, closeQueue func()) {
	db, closeDB := openDB()
	return newQueue(db, cfg), closeDB
}
