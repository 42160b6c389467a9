package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestDiscardedConnectionKeepsNoLock: a context ends as a transaction begins, and the connection is discarded. SQLite keeps
// the connection as long as another store of the pool has statements on it.
func TestDiscardedConnectionKeepsNoLock(t *testing.T) {
	t.Parallel()
	dsn := strings.Replace(testdb.DSN(t, testdb.SQLite), "busy_timeout(10000)", "busy_timeout(1)", 1)
	db, err := testdb.OpenDSN("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	s := migrated(t, db)
	other := New(db, s.server, Options{Tables: s.tables})
	put := func(s *Store) error {
		return s.transact(t.Context(), func(c *conn) error {
			_, err := c.exec(t.Context(), statements.PutPolicy(s.server, s.tables), statements.Values{"key": "k", "policy": "delay 1s"}, nil)
			return err
		})
	}
	if err := put(other); err != nil {
		t.Fatal(err)
	}
	err = s.onConn(t.Context(), func(c *conn) error {
		if err := c.begin(t.Context(), s.server); err != nil {
			t.Error(err)
		}
		c.broken = true // since the driver has returned the error of the context
		return context.Canceled
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := put(s); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}
