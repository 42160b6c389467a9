package pgxqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/pgxqueue"
)

// notifies is a tracer that receives how each statement of a pool notifies: "within" a
// transaction that does something else, or "beside" all others.
type notifies chan string

func (n notifies) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "pg_notify") {
		how := "beside"
		if conn.PgConn().TxStatus() != 'I' || strings.Contains(data.SQL, "insert") {
			how = "within"
		}
		n <- how
	}
	return ctx
}

// within reports whether a transaction has notified, and forgets all that it has seen.
// Calls make such notices before they return, others may come later.
func (n notifies) within() (seen bool) {
	for len(n) > 0 {
		seen = <-n == "within" || seen
	}
	return seen
}

func (notifies) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestOnlyTransactionsOfCallersNotify: the commits of a queue's own transactions do not
// wait for each other because of notifications. Those of callers notify except with
// NotifyAfterCalls.
func TestOnlyTransactionsOfCallersNotify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode   falldue.NotifyMode
		call   string // how calls without a transaction notify
		withTx string // how those with a transaction of the caller do
	}{
		"as it is": {falldue.NotifyDefault, "beside", "within"},
		"quiet":    {falldue.NotifyAfterCalls, "beside", ""},
		"in all":   {falldue.NotifyInTx, "within", "within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, seen := t.Context(), make(notifies, 100)
			config, err := pgxpool.ParseConfig(testdb.DSN(t, testdb.Postgres))
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.Tracer = seen
			pool, err := pgxpool.NewWithConfig(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			q, err := pgxqueue.New(pool, falldue.Config{Notifications: falldue.Notifications{Mode: c.mode}})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			kind := falldue.NewKind[int]("k", falldue.KindConfig{})
			unique := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs(), OnConflict: falldue.ConflictReplace}}
			calls := map[string]func(tx falldue.Tx) error{
				"one": func(tx falldue.Tx) (err error) {
					if tx == nil {
						_, err = kind.Enqueue(ctx, q, 1)
					} else {
						_, err = kind.EnqueueTx(ctx, q, tx, 1)
					}
					return err
				},
				"unique": func(tx falldue.Tx) (err error) {
					for range 2 { // the second replaces the first
						if tx == nil {
							_, err = kind.Enqueue(ctx, q, 7, unique)
						} else {
							_, err = kind.EnqueueTx(ctx, q, tx, 7, unique)
						}
					}
					return err
				},
			}
			for _, n := range []int{3, 501} {
				calls[map[int]string{3: "few", 501: "many"}[n]] = func(tx falldue.Tx) (err error) {
					if tx == nil {
						_, err = kind.EnqueueMany(ctx, q, make([]int, n))
					} else {
						_, err = kind.EnqueueManyTx(ctx, q, tx, make([]int, n))
					}
					return err
				}
			}
			for name, call := range calls {
				if err := call(nil); err != nil {
					t.Fatal(name, err)
				}
				if c.call == "beside" {
					first := receive(t, seen, "a notice of "+name)
					if first == "within" {
						t.Errorf("%s notifies within its transaction", name)
					}
				}
				if got := seen.within(); got != (c.call == "within") {
					t.Errorf("%s notifies within its transaction: %v", name, got)
				}
				tx, err := pool.Begin(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(call(pgxqueue.Tx(tx)), tx.Commit(ctx)); err != nil {
					t.Fatal(name, err)
				}
				if got := seen.within(); got != (c.withTx == "within") {
					t.Errorf("%s in a transaction of the caller notifies within it: %v", name, got)
				}
			}
		})
	}
}
