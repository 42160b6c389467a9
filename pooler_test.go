package falldue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/queuetest"
)

// poolerSettings are those of each driver that change how it prepares.
var poolerSettings = map[string][]string{
	"postgres": {"", "&binary_parameters=yes"},
	"pgx":      {"", "&default_query_exec_mode=exec", "&default_query_exec_mode=simple_protocol"},
}

// TestPgBouncer holds falldue to the suite through PgBouncer, where that gives
// each connection a session, and to saying what to change where it does not.
func TestPgBouncer(t *testing.T) {
	testdb.DSN(t, testdb.Postgres) // which skips where PostgreSQL is not wanted
	t.Run("session", func(t *testing.T) {
		t.Parallel()
		through := testdb.PgBouncer(t, "session")
		for driver := range poolerSettings {
			t.Run(driver, func(t *testing.T) {
				queuetest.TestQueue(t, queuetest.Harness{
					DSN:  func(t *testing.T) string { return through(testdb.DSN(t, testdb.Postgres)) },
					Open: func(dsn string) (*sqlx.DB, error) { return sqlx.Open(driver, dsn) },
				})
			})
		}
	})
	t.Run("transaction", func(t *testing.T) {
		t.Parallel()
		through := testdb.PgBouncer(t, "transaction")
		for driver, settings := range poolerSettings {
			dsn := through(testdb.DSN(t, testdb.Postgres))
			for _, more := range settings {
				t.Run(driver+more, func(t *testing.T) {
					db, err := sqlx.Open(driver, dsn+more)
					if err != nil {
						t.Fatal(err)
					}
					defer db.Close()
					// The first connection has a server to itself; later ones share.
					for range 3 {
						_, err := falldue.New(db, falldue.Config{})
						if !errors.Is(err, dialect.ErrTransactionPooling) || !strings.Contains(err.Error(), "pool_mode=session") {
							t.Errorf("New: got error %v, want one that says what to change", err)
						}
					}
				})
			}
		}
	})
}

// TestLostStatementIsExplained: a statement that is gone from its session, as
// where a pooler changed its mode meanwhile, gives an error that says why.
func TestLostStatementIsExplained(t *testing.T) {
	db := testdb.Open(t, testdb.Postgres)
	db.SetMaxOpenConns(1)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := q.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Counts(ctx); err != nil {
		t.Fatal(err)
	}
	db.MustExec("deallocate all")
	if _, err := q.Counts(ctx); !errors.Is(err, dialect.ErrTransactionPooling) {
		t.Errorf("got error %v, want ErrShared", err)
	}
}
