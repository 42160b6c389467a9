package systemtest

import (
	"context"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestRunRefusesDatabaseWithOtherDelays gives a database a power function of its own.
// Run must return an error that has both values.
func TestRunRefusesDatabaseWithOtherDelays(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	db, err := sqlx.Open("postgres", dsn+"&search_path=odd,pg_catalog,public")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.MustExec("create schema odd")
	db.MustExec("create function odd.power(float8, float8) returns float8 language sql immutable as 'select pg_catalog.power($1, $2) + 1'")
	q, err := falldue.New(db, falldue.Config{Schema: "public"})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	power, err := backoff.ParseOverride("15s + n^4")
	if err != nil {
		t.Fatal(err)
	}
	err = ops.New(q).SetPolicy(t.Context(), falldue.Subject{Kind: "other"}, power)
	if err == nil || !strings.Contains(err.Error(), "16s in Go, but 17s on postgres") {
		t.Errorf("SetPolicy: error %v, want one that shows 16s and 17s", err)
	}
	if history, err := ops.New(q).OverrideHistory(t.Context()); err != nil || len(history) != 0 {
		t.Errorf("stored are %+v, error %v", history, err)
	}
	kind := falldue.NewKind[int]("misjudged", falldue.KindConfig{Policy: backoff.ParseDeferred("delay 15s + n^4")})
	falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error { return nil })
	err = q.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "16s in Go, but 17s on postgres") {
		t.Errorf("got error %v, want one that shows 16s and 17s", err)
	}
}
