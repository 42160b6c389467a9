package main

import (
	"testing"

	"github.com/jmoiron/sqlx"
)

// TestSQLitesDriverCountsStatements counts one of each sort, as a server would. No other
// test that counts runs at the same time.
func TestSQLitesDriverCountsStatements(t *testing.T) {
	db := database{server: &server{engine: sqlite}, dsn: "file:" + t.TempDir() + "/db", counts: true}
	pool, err := db.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	var stmt *sqlx.Stmt
	var tx *sqlx.Tx
	var n int
	for _, step := range []struct {
		name string
		want int
		do   func() error
	}{
		{"exec", 1, func() (err error) { _, err = pool.ExecContext(t.Context(), "create table t (n)"); return err }},
		{"query", 1, func() error { return pool.GetContext(t.Context(), &n, "select count(*) from t") }},
		{"prepare", 0, func() (err error) {
			if stmt, err = pool.PreparexContext(t.Context(), "select ?"); err == nil {
				t.Cleanup(func() { _ = stmt.Close() })
			}
			return err
		}},
		{"prepared query", 1, func() error { return stmt.GetContext(t.Context(), &n, 1) }},
		{"begin", 1, func() (err error) { tx, err = pool.BeginTxx(t.Context(), nil); return err }},
		{"exec in a transaction", 1, func() (err error) { _, err = tx.ExecContext(t.Context(), "insert into t values (1)"); return err }},
		{"commit", 1, func() error { return tx.Commit() }},
	} {
		before, err := db.statements(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if after, _ := db.statements(t.Context()); after-before != step.want {
			t.Errorf("%s: %d statements counted, want %d", step.name, after-before, step.want)
		}
	}
	if n != 1 {
		t.Errorf("the prepared query returned %d", n)
	}
}
