package pgxqueue_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/pgxdb"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/pgxqueue"
	"github.com/falldue/falldue/queuetest"
)

// TestConformance runs the cases that use a transaction of the caller's, on queues of this
// package and with transactions of pgx. The others run in the root package, on a pool of
// pgx.
func TestConformance(t *testing.T) {
	var pools sync.Map // by the databases on them
	queuetest.TestQueue(t, queuetest.Harness{
		OnlyCallersTx: true,
		DSN: func(t *testing.T) string {
			dsn := testdb.DSN(t, testdb.Postgres)
			t.Cleanup(func() { // after its databases are closed, and before it is dropped
				for db, pool := range pools.Range {
					if pool := pool.(*pgxpool.Pool); strings.HasPrefix(pool.Config().ConnString(), dsn) {
						pools.Delete(db)
						pgxdb.Close(pool)
						pool.Close()
					}
				}
			})
			return dsn
		},
		Open: func(dsn string) (*sqlx.DB, error) {
			pool, err := pgxpool.New(context.Background(), dsn+"&pool_max_conns=16")
			if err != nil {
				return nil, err
			}
			db := sqlx.NewDb(pgxdb.Open(pool), "pgx")
			pools.Store(db, pool)
			return db, nil
		},
		New: func(db *sqlx.DB, cfg falldue.Config) (*falldue.Queue, error) {
			pool, _ := pools.Load(db)
			return pgxqueue.New(pool.(*pgxpool.Pool), cfg)
		},
		Begin: func(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions) (*queuetest.Transaction, error) {
			var o pgx.TxOptions
			if opts != nil {
				o.IsoLevel = pgx.TxIsoLevel(strings.ToLower(opts.Isolation.String()))
			}
			pool, _ := pools.Load(db)
			tx, err := pool.(*pgxpool.Pool).BeginTx(ctx, o)
			if err != nil {
				return nil, err
			}
			ended := context.WithoutCancel(ctx)
			return &queuetest.Transaction{
				Tx:     pgxqueue.Tx(tx),
				Commit: func() error { return tx.Commit(ended) }, Rollback: func() error { return tx.Rollback(ended) },
			}, nil
		},
	})
}
