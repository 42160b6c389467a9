package main

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// viewed returns a subject on an empty SQLite file whose statements are counted.
func viewed(t *testing.T) (*falldueSubject, database, *sqlx.DB) {
	t.Helper()
	db := database{server: &server{engine: sqlite}, dsn: "file:" + t.TempDir() + "/db?_pragma=busy_timeout(10000)", counts: true}
	pool, err := db.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	q, err := falldue.New(pool, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &falldueSubject{producer: q}, db, pool
}

// TestViewersShareStatements: 100 viewers of the first page at the same moment cost no more statements than one
// viewer, and views of the next moment cost none. No other test that counts runs at the same time.
func TestViewersShareStatements(t *testing.T) {
	f, db, _ := viewed(t)
	if _, _, err := f.views(t.Context(), db, 1, 1); err != nil { // the first statements of a pool prepare others
		t.Fatal(err)
	}
	one, _, err := f.views(t.Context(), db, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	all, took, err := f.views(t.Context(), db, dashViewers, 1)
	if err != nil {
		t.Fatal(err)
	}
	if one == 0 || all > one || len(took) != dashViewers {
		t.Errorf("one viewer costs %d statements, and %d viewers cost %d", one, dashViewers, all)
	}
}

// TestManyLanesTakeFewStatements: the first view does not send a statement for each lane, or for each part of a sample.
// No other test that counts runs at the same time.
func TestManyLanesTakeFewStatements(t *testing.T) {
	f, db, pool := viewed(t)
	pool.MustExec(`with recursive n (i) as (select 1 union all select i + 1 from n where i < 50000)
		insert into falldue_tasks (queue, kind, task_key, attempts, fence, updated_at, created_at, last_error, payload)
		select 'default', 'kind' || i % 40, 'key:' || i % 5000, 1 + i % 10, 1 + i % 10, 1e15, 1e15, '503 Service Unavailable', '{}' from n`)
	n, _, err := f.views(t.Context(), db, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if most := 120; n > most {
		t.Errorf("a view with 5,000 keys runs %d statements, more than %d", n, most)
	} else {
		t.Log(n, "statements")
	}
}
