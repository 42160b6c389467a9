package migrations_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/migrations"
)

// TestDatabasesInMemory: a pool whose connections have a database in memory each is refused, and leaves no trace.
func TestDatabasesInMemory(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dsn     string
		conns   int
		refused bool
	}{
		{":memory:", 0, true},
		{":memory:", 2, true},
		{":memory:", 1, false},
		{"file::memory:", 0, true},
		{"file:one?mode=memory", 4, true},
		{"file:one?mode=memory", 1, false},
		{"file:falldue_shared?mode=memory&cache=shared", 0, false},
		{"file::memory:?cache=shared", 4, false},
		{filepath.Join(t.TempDir(), "shop.db"), 0, false},
	} {
		db, err := sql.Open("sqlite", c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(c.conns)
		m, err := migrations.New(db, server, dialect.Tables{Prefix: "falldue_"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = m.Up(t.Context()); c.refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "SetMaxOpenConns(1)") {
			t.Errorf("%s with %d connections: %v, refused is to be %v", c.dsn, c.conns, err, c.refused)
		}
		var version int
		if err := db.QueryRowContext(t.Context(), "pragma user_version").Scan(&version); err != nil || version != 0 {
			t.Errorf("%s: the user's version is %d, error %v", c.dsn, version, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
