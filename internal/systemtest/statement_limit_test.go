package systemtest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestSweepsGoOnUnderAStatementLimit: the tasks of 40,000 keys all start although no statement of the worker may
// take as long as one that finds all of them.
func TestSweepsGoOnUnderAStatementLimit(t *testing.T) {
	t.Parallel()
	limits := map[string]string{
		testdb.Postgres: "statement_timeout=150", testdb.MySQL: "max_execution_time=150", testdb.MariaDB: "max_statement_time=0.15",
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		const keys = 40_000
		limit := limits[engine]
		if limit == "" {
			t.Skip("it has no limit for statements")
		}
		dsn := testdb.DSN(t, engine)
		open := func(dsn string) *sqlx.DB {
			db, err := testdb.OpenFew(testdb.Drivers(engine)[0], dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		}
		cfg := falldue.Config{Logger: slog.New(slog.DiscardHandler), Concurrency: 500}
		producer := migratedQueue(t, open(dsn), cfg)
		if strings.Contains(dsn, "?") {
			dsn += "&" + limit
		} else {
			dsn += "?" + limit
		}
		kind := falldue.NewKind[int]("event", falldue.KindConfig{}).KeyedBy(func(n int) string { return fmt.Sprint("customer:", n) })
		list := make([]int, keys)
		for i := range list {
			list[i] = i
		}
		if _, err := kind.EnqueueMany(t.Context(), producer, list); err != nil {
			t.Fatal(err)
		}
		ran, done := atomic.Int64{}, make(chan struct{})
		var worker *falldue.Queue
		limited := open(dsn)
		waitFor(t, "New within the limit", func() (ok bool) { // on a busy machine, any statement may take too long
			var err error
			worker, err = falldue.New(limited, cfg)
			return err == nil
		})
		falldue.Handle(worker, kind, func(context.Context, falldue.Task[int]) error {
			if ran.Add(1) == keys {
				close(done)
			}
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		defer func() { stop(); <-ended }()
		go func() {
			defer close(ended)
			for err := worker.Run(ctx); err != nil; err = worker.Run(ctx) {
				if ctx.Err() != nil {
					t.Error(err)
				}
				t.Logf("Run is called again: %v", err) // its first statements have taken too long
			}
		}()
		for before := int64(-1); before < ran.Load(); {
			before = ran.Load()
			select {
			case <-done:
				return
			case <-time.After(testdb.Patience): // and longer, as long as tasks run
			}
		}
		t.Errorf("%d of %d tasks have run", ran.Load(), keys)
	})
}
