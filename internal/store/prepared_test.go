package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// onEachDriver runs f for each driver of each engine, with a pool of one connection.
func onEachDriver(t *testing.T, f func(t *testing.T, engine string, s *Store)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, name := range testdb.Drivers(engine) {
			t.Run(name, func(t *testing.T) {
				db := testdb.OpenDriver(t, engine, name)
				db.SetMaxOpenConns(1)
				f(t, engine, migrated(t, db))
			})
		}
	})
}

// TestStaleStatementsArePreparedAnew: a migration changes the type of a column that
// prepared statements return, or other code drops the statements of the session.
func TestStaleStatementsArePreparedAnew(t *testing.T) {
	t.Parallel()
	onEachDriver(t, func(t *testing.T, engine string, s *Store) {
		changes := map[string][]string{
			testdb.Postgres: {"alter table falldue_tasks alter column max_attempts type bigint", "deallocate all"},
			testdb.MySQL:    {"alter table falldue_tasks modify max_attempts bigint not null default 0"},
			testdb.MariaDB:  {"alter table falldue_tasks modify max_attempts bigint not null default 0"},
			testdb.SQLite:   {"alter table falldue_tasks add column another text"},
		}
		for _, change := range append([]string{"select 1"}, changes[engine]...) {
			if _, err := s.db.Exec(change); err != nil {
				t.Fatal(err)
			}
			ids, err := s.Enqueue(t.Context(), nil, []Entry{{Queue: "default", Kind: "kind", Payload: "1"}})
			if err != nil {
				t.Fatalf("after %s: enqueue: %v", change, err)
			}
			if _, err := s.Task(t.Context(), ids[0]); err != nil {
				t.Errorf("after %s: %v", change, err)
			}
		}
	})
}

// TestReadOnlyConnectionsAreDiscarded: the server allows no writes on a connection, such as the old
// primary after a failover. The next try has another connection.
func TestReadOnlyConnectionsAreDiscarded(t *testing.T) {
	t.Parallel()
	onEachDriver(t, func(t *testing.T, engine string, s *Store) {
		demote := "set session transaction read only"
		switch engine {
		case testdb.SQLite:
			t.Skip("it has one server for ever")
		case testdb.TiDB:
			t.Skip("it has no read-only transactions")
		case testdb.Postgres:
			demote = "set session characteristics as transaction read only"
		}
		put := func() error {
			_, err := s.Enqueue(t.Context(), nil, []Entry{{Queue: "default", Kind: "kind", Payload: "1"}})
			return err
		}
		for name, write := range map[string]func() error{
			"statement": put,
			"transaction": func() error {
				return s.transact(t.Context(), func(c *conn) error {
					_, err := s.insert(t.Context(), c, []Entry{{Queue: "default", Kind: "kind", Payload: "1"}})
					return err
				})
			},
		} {
			if err := put(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.db.Exec(demote); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			for _, c := range s.conns {
				c.opened = time.Time{} // long ago
			}
			s.mu.Unlock()
			if err := write(); s.server.Classify(err) != dialect.ReadOnly {
				t.Fatalf("%s: it returned %v", name, err)
			}
			if err := write(); err != nil {
				t.Errorf("%s: the next try: %v", name, err)
			}
		}
	})
}

// fullServer allows a number of prepared statements.
type fullServer struct {
	driver.Conn
	room   int
	closed []string
}

type fullStmt struct {
	driver.Stmt
	server *fullServer
	text   string
}

func (f *fullServer) PrepareContext(_ context.Context, text string) (driver.Stmt, error) {
	if f.room == 0 {
		return nil, &mysql.MySQLError{Number: 1461, Message: "Can't create more than max_prepared_stmt_count statements"}
	}
	f.room--
	return &fullStmt{server: f, text: text}, nil
}

func (s *fullStmt) Close() error {
	s.server.room++
	s.server.closed = append(s.server.closed, s.text)
	return nil
}

func TestFewStatementsStayPrepared(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	full := &fullServer{room: 1000}
	c := New(nil, server, Options{}).newConn(full)
	prepare := func(i int) *prepared {
		t.Helper()
		stmt, err := c.prepare(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		return stmt
	}
	for i := range maxPrepared {
		prepare(i).ran = time.Unix(int64(i), 0)
	}
	prepare(0).ran = time.Now()
	prepare(maxPrepared)
	if got := fmt.Sprint(full.closed); got != "[1]" {
		t.Errorf("closed were %s, want the one that ran least recently", got)
	}
	if len(c.prepared) != maxPrepared || maxPrepared > 40 {
		t.Errorf("%d statements are prepared", len(c.prepared))
	}
	c.forget(prepare(0))
	full.room = 0 // others have prepared many
	prepare(1)
	if len(c.prepared) != 1 {
		t.Errorf("%d statements are prepared, want the one that is needed", len(c.prepared))
	}
}
