package migrations_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// TestAHeldLockIsNamed: a migrator that waits for a lock gives up, and says who holds it.
func TestAHeldLockIsNamed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		hold, want := "", `gave up after 200ms: .*lock.* is held by connection \d+ \(user \w+, host .+\); end that session if it is not migrating`
		switch {
		case engine == testdb.TiDB, engine == testdb.MySQL && os.Getenv(testdb.KeyspacesVariable) != "": // TiDB and Vitess do not say which
			want = `gave up after 200ms: .*lock.* is held by another session; end that session if it is not migrating`
		case engine == testdb.Postgres:
			want = `gave up after 200ms: advisory lock \d+ is held by server process \d+ \(user \w+, application .*, idle\); end that session if it is not migrating`
		case engine == testdb.SQLite:
			file := filepath.Join(t.TempDir(), "held.db") // whose waits are short
			db = sqlx.MustOpen("sqlite", "file:"+file+"?_pragma=busy_timeout(10)")
			t.Cleanup(func() { _ = db.Close() })
			hold, want = "begin immediate", `gave up after 200ms: .*database is locked`
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		m := migrator(t, db, usual)
		if err := m.Lock(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), hold); hold != "" && err != nil {
			t.Fatal(err)
		}
		m.SetLockTimeout(200 * time.Millisecond)
		if _, err := m.Up(t.Context()); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("up: error %v, want %s", err, want)
		}
	})
}

// TestTablesOfAnotherToolAreRefused: nothing says at which version they are.
func TestTablesOfAnotherToolAreRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		server, err := dialect.Probe(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		files, err := migrations.Dump(server, migrations.DumpParams{Tables: usual, Format: migrations.Atlas})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for statement := range strings.SplitSeq(file.Text, ";\n") {
				if _, err := db.Exec(statement); err != nil && strings.TrimSpace(statement) != "" {
					t.Fatal(err)
				}
			}
		}
		m := migrator(t, db, usual)
		for name, act := range map[string]func() error{
			"up":     func() error { _, err := m.Up(t.Context()); return err },
			"down":   func() error { _, err := m.Down(t.Context()); return err },
			"status": func() error { _, err := m.Status(t.Context()); return err },
		} {
			if err := act(); !errors.Is(err, migrations.ErrForeign) || !strings.Contains(err.Error(), `files of "falldue migrate dump"`) {
				t.Errorf("%s: error %v, want one that says what to do", name, err)
			}
		}
		if exists(t, db, usual, "migrations") || !exists(t, db, usual, "tasks") {
			t.Error("the tables have changed")
		}
	})
}

// TestTiDBReadsWhatIsMeantForIt, in comments that MySQL and MariaDB leave out.
func TestTiDBReadsWhatIsMeantForIt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if familyOf(dialect.Name(engine)) != dialect.MySQL {
			return // it has other files
		}
		db := testdb.Open(t, engine)
		if _, err := migrator(t, db, usual).Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		var name, made string
		if err := db.QueryRow("show create table falldue_tasks").Scan(&name, &made); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(strings.ToLower(made), "auto_id_cache"); has != (engine == testdb.TiDB) {
			t.Errorf("it has auto_id_cache: %v\n%s", has, made)
		}
	})
}
