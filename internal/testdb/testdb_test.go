package testdb_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

func TestDatabasesAreIsolated(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		one, other := testdb.Open(t, engine), testdb.Open(t, engine)
		one.MustExec("CREATE TABLE marks (id INTEGER)")
		one.MustExec("INSERT INTO marks VALUES (1)")
		// Had they one database in common, the table would exist already.
		other.MustExec("CREATE TABLE marks (id INTEGER)")
		if n := count(t, other); n != 0 {
			t.Errorf("the second database holds %d rows of the first", n)
		}
		if n := count(t, one); n != 1 {
			t.Errorf("the first database holds %d rows, want 1", n)
		}
	})
}

func count(t *testing.T, db *sqlx.DB) (n int) {
	t.Helper()
	if err := db.Get(&n, "SELECT count(*) FROM marks"); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDatabasesOfTestsWithOddNamesAreIsolated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"odd", "odd", "odd?", "odd%41", "odd#"} {
		t.Run(name, func(t *testing.T) {
			testdb.Open(t, testdb.SQLite).MustExec("CREATE TABLE marks (id INTEGER)")
		})
	}
}

func TestDatabaseIsGoneAfterItsTest(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		var used *sqlx.DB
		var dsn string
		t.Run("use", func(t *testing.T) {
			dsn = testdb.DSN(t, engine)
			// A transaction that is never ended must not hold up the drop.
			used = sqlx.MustConnect(testdb.Drivers(engine)[0], dsn)
			used.MustExec("CREATE TABLE marks (id INTEGER)")
			used.MustBegin().MustExec("INSERT INTO marks VALUES (1)")
		})
		defer used.Close()
		if engine == testdb.SQLite {
			return // a file in the test's own folder, which package testing removes
		}
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		if version, err := testdb.Check(ctx, engine, dsn); err == nil {
			t.Errorf("the database can still be opened on %s", version)
		}
	})
}

// information_schema.processlist of MySQL fails while any session runs a statement with
// a character beyond the Basic Multilingual Plane.
func TestDatabaseIsDroppedWhateverStatementsRun(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if testdb.Drivers(engine)[0] != "mysql" {
			return
		}
		other := testdb.Open(t, engine)
		ended := make(chan error, 1)
		ctx, end := context.WithCancel(t.Context())
		go func() {
			_, err := other.ExecContext(ctx, "SELECT sleep(60), '🎈'")
			ended <- err
		}()
		for !runs(t, other, "sleep(60)") {
			runtime.Gosched()
		}
		t.Run("drop", func(t *testing.T) { testdb.DSN(t, engine) })
		end()
		if err := <-ended; err == nil {
			t.Error("the statement ended before the database was dropped")
		}
	})
}

// runs reports whether a session of MySQL runs a statement with a text.
func runs(t *testing.T, db *sqlx.DB, text string) (found bool) {
	t.Helper()
	rows, err := db.Queryx("SHOW PROCESSLIST") //nolint:sqlclosecheck // the linter does not see the Close of sqlx
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		row := map[string]any{}
		if err := rows.MapScan(row); err != nil {
			t.Fatal(err)
		}
		info, _ := row["Info"].([]byte)
		found = found || strings.Contains(string(info), text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPostgresOpensByEachDriver(t *testing.T) {
	t.Parallel()
	for _, driver := range testdb.Drivers(testdb.Postgres) {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			db := testdb.OpenDriver(t, testdb.Postgres, driver)
			var name string
			if err := db.Get(&name, "SELECT current_database()"); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(name, "falldue_test_") {
				t.Errorf("opened database %q, which is none of testdb's", name)
			}
		})
	}
}

func TestShortCoversSQLiteAlone(t *testing.T) {
	t.Parallel()
	engines := testdb.Engines(t)
	if testing.Short() && !slices.Equal(engines, []string{"sqlite"}) {
		t.Errorf("-short covers %v", engines)
	}
	if len(engines) == 0 {
		t.Error("no engine is covered")
	}
	if !slices.Contains(engines, testdb.Postgres) {
		testdb.StartPgBouncer(t, "session") // skips the test; it installs nothing
		t.Error("a pooler runs before a server that this run does not cover")
	}
}
