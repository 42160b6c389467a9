package pgxqueue_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/pgxqueue"
)

// TestSessionsThatAreReset: a pool resets each session that comes back, which then has
// no prepared statements. pgx works on such a pool in every mode but its default, and so
// do queues.
func TestSessionsThatAreReset(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(testdb.DSN(t, testdb.Postgres) + "&pool_max_conns=4&default_query_exec_mode=" + mode)
			if err != nil {
				t.Fatal(err)
			}
			config.AfterRelease = func(c *pgx.Conn) bool {
				_, err := c.Exec(context.Background(), "discard all", pgx.QueryExecModeSimpleProtocol)
				return err == nil
			}
			pool, q := openPool(t, config, falldue.Config{})
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			const calls, each = 4, 10
			kind := falldue.NewKind[int]("k", falldue.KindConfig{})
			ran := make(chan int, calls*each)
			falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
				if task.Attempt > 1 {
					t.Error("an attempt failed")
				}
				return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					ran <- task.Args
					return task.DoneTx(ctx, pgxqueue.Tx(tx))
				})
			})
			stop := start(t, q)
			defer stop()
			var calling sync.WaitGroup
			for range calls {
				calling.Go(func() {
					for range each {
						if _, err := kind.Enqueue(t.Context(), q, 1); err != nil {
							t.Error(err)
						}
					}
				})
			}
			calling.Wait()
			for range calls * each {
				receive(t, ran, "a task")
			}
		})
	}
}

// TestErrorsSayThingsOnce: the driver returns the error of a query twice.
func TestErrorsSayThingsOnce(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	open(t, dsn, 1, falldue.Config{}) // which migrates
	config, err := pgxpool.ParseConfig(dsn + "&default_transaction_read_only=on")
	if err != nil {
		t.Fatal(err)
	}
	_, q := openPool(t, config, falldue.Config{})
	_, err = falldue.NewKind[int]("k", falldue.KindConfig{}).Enqueue(t.Context(), q, 1)
	if err == nil || strings.Count(err.Error(), "read-only") != 1 {
		t.Errorf("error %q, want one that says once that the session is read-only", err)
	}
}
