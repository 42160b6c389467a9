package pgxdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/pgxdb"
)

// TestAClosedPoolIsAway: as a closed database of package sql is.
func TestAClosedPoolIsAway(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), "postgres://127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	db := pgxdb.Open(pool)
	defer pgxdb.Close(pool)
	pool.Close()
	d, err := dialect.Of(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); d.Classify(err) != dialect.Disconnected {
		t.Errorf("%v is of class %v", err, d.Classify(err))
	}
}
