package migrations_test

import (
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// TestTablesOfAnotherSchemaAreNotShared: a search path that finds tables behind its first schema is refused,
// and both schemas can be chosen.
func TestTablesOfAnotherSchemaAreNotShared(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	up := func(dsn string, tables dialect.Tables) (int, error) {
		t.Helper()
		db, err := sqlx.Open(testdb.Drivers(testdb.Postgres)[0], dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		db.MustExec("create schema if not exists app")
		server, err := dialect.Probe(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		m, err := migrations.New(db.DB, server, tables)
		if err != nil {
			t.Fatal(err)
		}
		return m.Up(t.Context())
	}
	tables := dialect.Tables{Prefix: "falldue_"}
	if _, err := up(dsn, tables); err != nil {
		t.Fatal(err)
	}
	both := dsn + "&search_path=app,public"
	if !strings.Contains(dsn, "?") {
		both = dsn + "?search_path=app,public"
	}
	if _, err := up(both, tables); err == nil || !strings.Contains(err.Error(), `the search path begins with schema "app", but the tables are in schema "public": set Schema to "public" to use these tables, or to "app" to create new tables`) {
		t.Errorf("error %v", err)
	}
	tables.Schema = "public"
	if n, err := up(both, tables); err != nil || n != 0 {
		t.Errorf("%d migrations of the old tables, error %v", n, err)
	}
	tables.Schema = "app"
	if n, err := up(both, tables); err != nil || n == 0 {
		t.Errorf("%d migrations of new tables, error %v", n, err)
	}
	tables.Schema = ""
	if n, err := up(both, tables); err != nil || n != 0 {
		t.Errorf("%d migrations of tables in the first schema, error %v", n, err)
	}
}
