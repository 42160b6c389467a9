package pgxqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/pgxqueue"
	"github.com/falldue/falldue/tasktest"
)

// TestQueueUsesTheClockOfTests: a test moves the clock of a queue on a pool.
func TestQueueUsesTheClockOfTests(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db, err := sqlx.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	clock := tasktest.NewClock(t, db, pool)
	q, err := pgxqueue.New(pool, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[string]("later", falldue.KindConfig{})
	falldue.Handle(q, kind, func(context.Context, falldue.Task[string]) error { return nil })
	if _, err := kind.Enqueue(t.Context(), q, "", falldue.EnqueueOptions{Delay: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if ran := clock.Advance(t, q, 23*time.Hour); len(ran) != 0 {
		t.Errorf("after 23 hours: %+v", ran)
	}
	if ran := clock.Advance(t, q, 2*time.Hour); len(ran) != 1 || ran[0].State != falldue.StateDone {
		t.Errorf("after 25 hours: %+v", ran)
	}
}
