package migrations_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

var usual = dialect.Tables{Prefix: "falldue_"}

func migrator(t *testing.T, db *sqlx.DB, tables dialect.Tables) *migrations.Migrator {
	t.Helper()
	server, err := dialect.Probe(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := migrations.New(db.DB, server, tables)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// exists reports whether a table can be read.
func exists(t *testing.T, db *sqlx.DB, tables dialect.Tables, table string) bool {
	t.Helper()
	server, err := dialect.Probe(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "select count(*) from "+tables.Name(server, table))
	return err == nil
}

func TestUpDownStatus(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		m := migrator(t, db, usual)
		ctx := t.Context()
		all := len(applied(t, m, false))
		if n, err := m.Up(ctx); err != nil || n != all {
			t.Fatalf("up ran %d migrations (error %v), want %d", n, err, all)
		}
		applied(t, m, true)
		if n, err := m.Up(ctx); err != nil || n != 0 {
			t.Errorf("the second up ran %d migrations (error %v), want none", n, err)
		}
		// Open connections must not block up or down.
		for range 3 {
			conn, err := db.Connx(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.ExecContext(ctx, "select 1"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
		// Nor must an unknown state, which PostgreSQL's tables accept.
		if engine == testdb.Postgres {
			if _, err := db.Exec("insert into falldue_tasks (queue, kind, state, payload) values ('q', 'k', 'odd', '{}')"); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := m.Down(ctx); err != nil || n != all {
			t.Fatalf("down took back %d migrations (error %v), want %d", n, err, all)
		}
		for _, table := range []string{"tasks", "attempts", "policies", "progress", "migrations"} {
			if exists(t, db, usual, table) {
				t.Errorf("table %s is left", table)
			}
		}
		if n, err := m.Up(ctx); err != nil || n != all {
			t.Fatalf("up after down ran %d migrations (error %v), want %d", n, err, all)
		}
	})
}

// applied returns all migrations, and checks that each is applied, or that none is.
func applied(t *testing.T, m *migrations.Migrator, want bool) []migrations.Status {
	t.Helper()
	list, err := m.Status(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("status: %v (error %v)", list, err)
	}
	for _, s := range list {
		if s.Applied != want {
			t.Errorf("%s: applied is %v, want %v", s.Name, s.Applied, want)
		}
	}
	return list
}

// TestManyAtOnce runs ten migrators of one database at the same time, each with a
// pool of its own, as ten processes would.
func TestManyAtOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		tables := usual
		if engine == string(dialect.Postgres) {
			tables.Schema = "new schema"
		}
		dsn, driver := testdb.DSN(t, engine), testdb.Drivers(engine)[0]
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		var group sync.WaitGroup
		var mu sync.Mutex
		ran := 0
		for range 10 {
			db, err := sqlx.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			m := migrator(t, db, tables)
			group.Go(func() {
				n, err := m.Up(ctx)
				if err != nil {
					t.Errorf("up: %v", err)
				}
				mu.Lock()
				ran += n
				mu.Unlock()
			})
		}
		group.Wait()
		db, err := sqlx.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		if all := len(applied(t, migrator(t, db, tables), true)); ran != all {
			t.Errorf("together they ran %d migrations, want %d", ran, all)
		}
	})
}

func TestNamesAreQuotedOrRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		d, err := dialect.DefaultServer(dialect.Name(engine))
		if err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"", "1a", "a-b", "a.b", `a"b`, "a`b", "a b", "täsks", strings.Repeat("p", 41), "a;drop"} {
			if _, err := migrations.FS(d, dialect.Tables{Prefix: prefix}); err == nil {
				t.Errorf("prefix %q is accepted", prefix)
			}
		}
		tables := dialect.Tables{Prefix: "Select_"} // a keyword, in mixed case
		if engine == string(dialect.Postgres) {
			tables.Schema = `odd."Schema"`
		} else if _, err := migrations.FS(d, dialect.Tables{Prefix: "a", Schema: "s"}); err == nil {
			t.Error("a schema is accepted, though the engine has none")
		}
		db := testdb.Open(t, engine)
		m := migrator(t, db, tables)
		if _, err := m.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !exists(t, db, tables, "tasks") {
			t.Error("the tables are not in the schema and with the prefix that were asked for")
		}
		if _, err := m.Down(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDumpHasEveryName(t *testing.T) {
	for _, name := range dialect.Names {
		d, err := dialect.DefaultServer(name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := migrations.FS(d, usual)
		if err != nil {
			t.Fatal(err)
		}
		err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, path)
			if strings.ContainsAny(string(text), "{}") {
				t.Errorf("%s: %s has a name that is not filled in", name, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		for _, format := range migrations.Formats {
			dumped, err := migrations.Dump(d, migrations.DumpParams{Tables: usual, Format: format})
			if err != nil || len(dumped) == 0 {
				t.Errorf("%s, %s: %d files (error %v)", name, format, len(dumped), err)
			}
		}
	}
	if _, err := migrations.Dump(dialect.Server{}, migrations.DumpParams{Tables: usual, Format: "flyway"}); !errors.Is(err, migrations.ErrFormat) {
		t.Errorf("an unknown format: error %v", err)
	}
}
