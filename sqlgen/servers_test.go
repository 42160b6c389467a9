package sqlgen

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// eachServer runs a test on every engine. Each run has its own connection, so that
// it can use temporary tables.
func eachServer(t *testing.T, test func(t *testing.T, d dialect.Dialect, db *sqlx.Conn)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, engine string) {
		d, err := dialect.Of(dialect.Name(engine))
		if err != nil {
			t.Fatal(err)
		}
		test(t, d, connect(t, engine))
	})
}

func connect(t testing.TB, engine string) *sqlx.Conn {
	t.Helper()
	db, err := testdb.Open(t, engine).Connx(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// run executes statements that prepare a test.
func run(t testing.TB, db *sqlx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	}
}
