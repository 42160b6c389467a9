package statements_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/othersql"
	"github.com/falldue/falldue/internal/testdb"
)

// eachServer runs f on the server of each engine of this run, and on servers of
// an engine that no code knows by name.
func eachServer(t *testing.T, f func(t *testing.T, db *sqlx.DB, s dialect.Server)) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		f(t, db, migrated(t, db))
	})
	for _, lack := range othersql.Lacks() {
		t.Run("without "+lack, func(t *testing.T) {
			t.Parallel()
			db := testdb.Open(t, testdb.Postgres)
			s, err := othersql.Probe(t.Context(), db, lack)
			if err != nil {
				t.Fatal(err)
			}
			migrate(t, db, s)
			f(t, db, s)
		})
	}
}

// TestPreparedWithoutAName prepares every statement on every kind of server.
func TestPreparedWithoutAName(t *testing.T) {
	eachServer(t, func(t *testing.T, db *sqlx.DB, s dialect.Server) { prepareAll(t, db, s) })
}
