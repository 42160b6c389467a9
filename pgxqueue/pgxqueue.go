// Package pgxqueue makes a queue on a pgx pool, for programs that use pgx without
// database/sql:
//
//	q, err := pgxqueue.New(pool, falldue.Config{})
//
// Use [Tx] to enqueue and complete tasks in a pgx transaction:
//
//	_, err := SendInvoice.EnqueueTx(ctx, q, pgxqueue.Tx(tx), args)
//
// Workers of such queues start a task as soon as its transaction commits, in any process and without any setting. The
// commit of a pgx transaction notifies the workers. PostgreSQL cannot commit several such transactions at the same
// time. If that is too slow, set the mode [falldue.NotifyAfterCalls]. Calls without a transaction notify after the
// call, with a separate statement.
package pgxqueue

import (
	"log/slog"
	"runtime"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/pgxdb"
	"github.com/falldue/falldue/internal/store"
)

// New returns a queue on a pool. It is like [falldue.New], except that
// [falldue.Notifications].Listen defaults to a function that listens on a separate connection, with the settings of
// the pool. The pool's BeforeConnect is called for that connection. AfterConnect and the
// pool's other hooks are not called, since listening needs none of their settings, such as a
// search_path. The connection is replaced after the pool's MaxConnLifetime. Do not close the
// pool while [falldue.Queue.Run] is running.
//
// The queue takes a connection from the pool for each statement or transaction, and returns it afterwards. If the pool
// allows two or more connections, a worker reserves one for leases and outcomes. The pool does not count the connection
// that listens. So a worker on a pool of four (the default of pgxpool on small machines) leaves three connections for
// handlers and everything else.
//
// Behind a pooler in transaction mode, which forwards no notifications, set Listen to a function that reaches the
// server itself, such as [pgnotify.DSN]'s. Without such a function, workers behind the pooler do not listen, and
// [falldue.Queue.Run] logs a warning.
//
// [pgnotify.DSN]: https://pkg.go.dev/github.com/falldue/falldue/pgnotify#DSN
func New(pool *pgxpool.Pool, cfg falldue.Config) (*falldue.Queue, error) {
	if pool == nil {
		return falldue.New(nil, cfg) // the error says so
	}
	own := &ownListener{listener: newListener(pool.Config())}
	if cfg.Notifications.Listen == nil {
		cfg.Notifications.Listen = own.listen
	}
	db := pgxdb.Open(pool)
	store.ShareTestClock(pool, db)
	q, err := falldue.New(sqlx.NewDb(db, "pgx"), cfg)
	if err != nil {
		pgxdb.Close(pool)
		return nil, err
	}
	inside := hooks.Of[interface {
		Store() *store.Store
		Logger() *slog.Logger
	}](q)
	own.pooled, own.log = inside.Store().Server().Caps.TransactionPooling, inside.Logger()
	// The database has a goroutine. It is needed as long as the store is, which a call and a
	// notice may use when the queue is no longer in use.
	runtime.AddCleanup(inside.Store(), pgxdb.Close, pool)
	return q, nil
}

// Tx returns a pgx transaction as a [falldue.Tx]. The queue's tables must be in the
// database of tx, which may belong to any pool or connection.
func Tx(tx pgx.Tx) falldue.Tx {
	if tx == nil {
		return nil // which falldue refuses
	}
	return pgxdb.Tx{Tx: tx}
}
