package store

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

func TestMain(m *testing.M) { testdb.Main(m) }

var tables = dialect.Tables{Prefix: "falldue_"}

// migrated returns the store of a database, whose tables it creates.
func migrated(t *testing.T, db *sqlx.DB) *Store {
	t.Helper()
	server, err := dialect.Probe(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := migrations.New(db.DB, server, tables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return New(db, server, Options{Tables: tables})
}
