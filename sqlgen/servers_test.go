package sqlgen

import (
	"context"
	"os"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/jmoiron/sqlx"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"
)

// eachServer runs a test on every engine: SQLite in this process, and the
// servers unless the tests run with -short.
func eachServer(t *testing.T, test func(t *testing.T, d dialect.Dialect, db *sqlx.Conn)) {
	for _, s := range []struct {
		name        dialect.Name
		driver, env string
	}{
		{dialect.SQLite, "sqlite", ""},
		{dialect.Postgres, "postgres", "FALLDUE_TEST_POSTGRES"},
		{dialect.MySQL, "mysql", "FALLDUE_TEST_MYSQL"},
		{dialect.MariaDB, "mysql", "FALLDUE_TEST_MARIADB"},
	} {
		t.Run(string(s.name), func(t *testing.T) {
			t.Parallel()
			dsn := ":memory:"
			if s.env != "" {
				if testing.Short() {
					t.Skip("-short runs SQLite alone")
				}
				if dsn = os.Getenv(s.env); dsn == "" {
					t.Fatalf("set %s to the server's data source name, or run with -short", s.env)
				}
			}
			db, err := sqlx.Open(s.driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			conn, err := db.Connx(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			d, err := dialect.Of(s.name)
			if err != nil {
				t.Fatal(err)
			}
			test(t, d, conn)
		})
	}
}
