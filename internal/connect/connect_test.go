package connect

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestResolveFindsTheDriver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ driver, dsn, wantDriver, wantSource string }{
		{"", "postgres://shop@localhost/shop", Postgres, "postgres://shop@localhost/shop"},
		{"", "postgresql://shop@localhost/shop", Postgres, "postgresql://shop@localhost/shop"},
		{"", "host=localhost dbname=shop", Postgres, "host=localhost dbname=shop"},
		{"", "shop:secret@tcp(localhost)/shop", MySQL, "shop:secret@tcp(localhost)/shop"},
		{"", "shop@unix(/run/mysqld.sock)/shop", MySQL, "shop@unix(/run/mysqld.sock)/shop"},
		{"", "file:shop.db?mode=rw", SQLite, "file:shop.db?mode=rw"},
		{"", "file:///srv/shop.db", SQLite, "file:///srv/shop.db"},
		{"", "sqlite:my shop?.db", SQLite, sqliteDSN("my shop?.db")},
		{"", "shop.db", SQLite, sqliteDSN("shop.db")},
		{MySQL, "/shop", MySQL, "/shop"},
		{SQLite, "a=b.db", SQLite, sqliteDSN("a=b.db")},
	} {
		driver, source, err := resolve(c.driver, c.dsn)
		if err != nil || driver != c.wantDriver || source != c.wantSource {
			t.Errorf("resolve(%q, %q) = %q, %q, %v; want %q, %q", c.driver, c.dsn, driver, source, err, c.wantDriver, c.wantSource)
		}
	}
	if dsn := sqliteDSN("my shop?.db"); !strings.HasPrefix(dsn, "file:my%20shop%3F.db?") {
		t.Errorf("sqliteDSN does not escape the path: %s", dsn)
	}
}

func TestErrorsListWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ driver, dsn, want string }{
		{"", "", "the DSN is empty; allowed are postgres://"},
		{"", "mysql://root:secret@localhost/shop", "no driver for a DSN that begins with mysql://; allowed are postgres://"},
		{"oracle", "shop", `unknown driver "oracle"; the drivers are [postgres mysql sqlite]`},
		{"", filepath.Join(t.TempDir(), "missing", "shop.db"), "open the database by driver sqlite: "},
	} {
		_, err := Open(t.Context(), c.driver, c.dsn)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("Open(%q, %q): %v; want %s…", c.driver, c.dsn, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestOpenPreparesSQLiteForSharing(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), "", filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for pragma, want := range map[string]string{"journal_mode": "wal", "busy_timeout": "10000"} {
		var got string
		if err := db.Get(&got, "pragma "+pragma); err != nil || got != want {
			t.Errorf("%s is %s (error %v), want %s", pragma, got, err, want)
		}
	}
}
