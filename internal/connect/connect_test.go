package connect

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolveFindsTheDriver(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ driver, dsn, wantDriver, wantSource string }{
		{"", "postgres://shop@localhost/shop", Postgres, "postgres://shop@localhost/shop"},
		{"", "postgresql://shop@localhost/shop", Postgres, "postgresql://shop@localhost/shop"},
		{"", "host=localhost dbname=shop", Postgres, "host=localhost dbname=shop"},
		{"", "postgres://shop@localhost/shop?pool_max_conns=5&pool_min_conns=2&sslmode=disable&statement_cache_capacity=0", Postgres, "postgres://shop@localhost/shop?sslmode=disable&"},
		{"", "host=localhost pool_max_conns=5 pool_max_conn_lifetime=1h dbname=shop", Postgres, "host=localhost dbname=shop"},
		{"", "shop:secret@tcp(localhost)/shop", MySQL, "shop:secret@tcp(localhost)/shop"},
		{"", "shop@unix(/run/mysqld.sock)/shop", MySQL, "shop@unix(/run/mysqld.sock)/shop"},
		{"", "file:shop.db?mode=rw", SQLite, "file:shop.db?mode=rw"},
		{"", "file:///srv/shop.db", SQLite, "file:///srv/shop.db"},
		{"", "sqlite:my shop?.db", SQLite, sqliteDSN("my shop?.db")},
		{"", file, SQLite, sqliteDSN(file)},
		{"", "sqlite:new.db", SQLite, sqliteDSN("new.db")},
		{SQLite, "new.db", SQLite, sqliteDSN("new.db")},
		{"", "mysql://shop:s%2Fe@localhost:3307/shop?parseTime=true", MySQL, "shop:s/e@tcp(localhost:3307)/shop?parseTime=true"},
		{"", "mysql://shop@localhost/shop", MySQL, "shop@tcp(localhost)/shop"},
		{"", "shop:secret@/shop", MySQL, "shop:secret@/shop"},
		{MySQL, "/shop", MySQL, "/shop"},
		{SQLite, "a=b.db", SQLite, sqliteDSN("a=b.db")},
	} {
		driver, source, err := resolve(c.driver, c.dsn)
		if err != nil || driver != c.wantDriver || source != c.wantSource {
			t.Errorf("resolve(%q, %q) = %q, %q, %v; want %q, %q", c.driver, c.dsn, driver, source, err, c.wantDriver, c.wantSource)
		}
	}
	if _, err := os.Stat("nonsense"); err == nil {
		t.Error("there is a file")
	}
	if dsn := sqliteDSN("my shop?.db"); !strings.HasPrefix(dsn, "file:my%20shop%3F.db?") {
		t.Errorf("sqliteDSN does not escape the path: %s", dsn)
	}
}

func TestErrorsListWhatIsAllowed(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing", "shop.db")
	for _, c := range []struct{ driver, dsn, want string }{
		{"", "", "the DSN is empty: must be postgres://"},
		{"", "redis://root:secret@localhost/shop", "no driver for a DSN that begins with redis://: must be postgres://"},
		{"", "nonsense", "the DSN is neither a URL nor the path of an existing file (a new SQLite file needs the prefix sqlite:): must be postgres://"},
		{"", "shop:secret@localhost/shop", "the DSN is neither a URL"},
		{"", "shop:secret@localhost", "the DSN is neither a URL"},
		{"", t.TempDir(), "the DSN is neither a URL"},
		{"", "mysql://root:se/cret@localhost/shop", `parse "mysql://xxxxx": invalid port`},
		{"oracle", "shop", `unknown driver "oracle"; the drivers are [postgres mysql sqlite]`},
		{"", "sqlite::memory:", "a SQLite database in memory exists only inside the process that opened it; name a file, such as sqlite:shop.db"},
		{SQLite, ":memory:", "a SQLite database in memory"},
		{"", "file::memory:?cache=shared", "a SQLite database in memory"},
		{"", "file:shop?cache=shared&mode=memory", "a SQLite database in memory"},
		{"", "sqlite:" + missing, "open the SQLite file " + missing + ": "},
		{SQLite, missing, "open the SQLite file " + missing + ": "},
		{SQLite, "postgres://shop:secret@localhost/missing/shop", "open the SQLite file: "},
		{"", "sqlite://shop:secret@localhost/missing/shop", "open the SQLite file: "},
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
	db, err := Open(t.Context(), SQLite, filepath.Join(t.TempDir(), "shop.db"))
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

// TestServersWithoutTLS: pgx and psql continue without TLS, so the error says what this driver
// needs for it.
func TestServersWithoutTLS(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, 8)) // the request for TLS
			_, _ = conn.Write([]byte("N"))
			_ = conn.Close()
		}
	}()
	_, err = Open(t.Context(), "", "postgres://shop:secret@"+l.Addr().String()+"/shop")
	if err == nil || !strings.Contains(err.Error(), "sslmode=disable") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got error %v", err)
	}
}

// TestMissingFilesShowNoSecrets: with the driver sqlite, the DSN of another driver is a path.
func TestMissingFilesShowNoSecrets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres://shop:secret@localhost/shop", "shop:secret@tcp(localhost)/shop", "user=shop password=secret", "postgres://secret"} {
		if _, err := OpenExisting(t.Context(), SQLite, name); err == nil || err.Error() != `the SQLite file does not exist; "falldue migrate up" creates it, with the tables` {
			t.Errorf("%s: %v", name, err)
		}
	}
}
