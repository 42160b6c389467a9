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

// poolerSettings are the settings of each driver that change how it prepares statements.
var poolerSettings = map[string][]string{
	"postgres": {"", "&binary_parameters=yes"},
	"pgx":      {"", "&default_query_exec_mode=exec", "&default_query_exec_mode=simple_protocol"},
}

// TestPgBouncer runs the suite through PgBouncer in session mode. In transaction mode
// New must return an error that says what to change.
func TestPgBouncer(t *testing.T) {
	testdb.DSN(t, testdb.Postgres) // skips the test if PostgreSQL is not selected
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
					// Later connections share a server with the first.
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

// TestLostStatementIsPreparedAgain: a prepared statement may be missing in its session,
// for example because a pooler has reset it. When it is missing again, the error says why;
// see TestMissingStatementsAreExplained of internal/store.
func TestLostStatementIsPreparedAgain(t *testing.T) {
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
	if _, err := q.Counts(ctx); err != nil {
		t.Error(err)
	}
}
