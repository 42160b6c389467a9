package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// nodes is a cluster behind one address. The first connection leads to a node that
// loses the majority and then refuses all statements. The others lead to a node that
// keeps the majority.
type nodes struct {
	opened int
	lost   bool
}

func (n *nodes) Driver() driver.Driver { return nil }

func (n *nodes) Connect(context.Context) (driver.Conn, error) {
	n.opened++
	return node{n, n.opened == 1}, nil
}

type node struct {
	*nodes
	loses bool
}

func (n node) answer() error {
	if n.loses && n.lost {
		return &mysql.MySQLError{Number: 1047, Message: "WSREP has not yet prepared node for application use"}
	}
	return nil
}

func (node) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (node) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (node) Close() error                        { return nil }

func (n node) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(0), n.answer()
}

func TestConnectionToRefusingServerIsDiscarded(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(&nodes{lost: true}), "mysql")
	defer db.Close()
	s := New(db, server, Options{})
	try := func() error {
		return s.Retry(t.Context(), func() error {
			_, err := db.ExecContext(t.Context(), "do 1")
			return err
		})
	}
	if err := try(); server.Classify(err) != dialect.Disconnected {
		t.Fatalf("the node without a majority gave the error %v", err)
	}
	if err := try(); err != nil {
		t.Errorf("the next try used the same node: %v", err)
	}
}

func TestConnectionWithOpenTransactionIsDiscarded(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	server.Caps.OddSession = "" // the connections answer no query
	refused := errors.New("refused")
	for _, c := range []struct {
		name   string
		fails  error
		lost   bool
		opened int
	}{
		{"committed", nil, false, 1},
		{"rolled back", refused, false, 1},
		{"rolled back, with a claim slot", fmt.Errorf("%w: %w", errHoldsSlot, refused), false, 2},
		{"not committed", nil, true, 2},
		{"not rolled back", refused, true, 2},
	} {
		cluster := &nodes{}
		db := sqlx.NewDb(sql.OpenDB(cluster), "mysql")
		t.Cleanup(func() { _ = db.Close() })
		s := New(db, server, Options{})
		err := s.transact(t.Context(), func(*conn) error {
			cluster.lost = c.lost
			return c.fails
		})
		if (err != nil) != (c.fails != nil || c.lost) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if err := s.transact(t.Context(), func(*conn) error { return nil }); err != nil {
			t.Errorf("%s: the next transaction: %v", c.name, err)
		}
		if cluster.opened != c.opened {
			t.Errorf("%s: %d connections were opened, want %d", c.name, cluster.opened, c.opened)
		}
	}
}

// lateAnswers is a server whose answers come just after the client has given up, and
// report success.
type lateAnswers struct {
	driver.Conn
	giveUp context.CancelFunc
	closed *int // statements
}

func (h lateAnswers) Connect(context.Context) (driver.Conn, error) { return h, nil }
func (lateAnswers) Driver() driver.Driver                          { return nil }
func (lateAnswers) Close() error                                   { return nil }
func (lateAnswers) NumInput() int                                  { return -1 }
func (lateAnswers) Columns() []string                              { return nil }
func (lateAnswers) Next([]driver.Value) error                      { return io.EOF }

func (h lateAnswers) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	if text == "commit" {
		h.giveUp()
	}
	return driver.RowsAffected(0), nil
}

func (h lateAnswers) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return lateStmt{h}, nil
}

type lateStmt struct{ lateAnswers }

func (s lateStmt) Close() error { *s.closed++; return nil }

func (lateStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errors.ErrUnsupported }
func (lateStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errors.ErrUnsupported }

func (s lateStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	s.giveUp()
	return s.lateAnswers, nil
}

func insertOnce(ctx context.Context, s *Store) error {
	return s.single(ctx, func(x runner) error {
		return x.query(ctx, statements.Stmt{SQL: "insert"}, nil, nil, func(row) error { return nil })
	})
}

// TestCancelledCommitIsNoSuccess: with lib/pq, a commit on PostgreSQL that is cancelled
// while it waits for a standby reports success. The store must return an error.
func TestCancelledCommitIsNoSuccess(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	server.Caps.OddSession = "" // it would be the query that is cancelled
	for name, do := range map[string]func(context.Context, *Store) error{
		"transaction": func(ctx context.Context, s *Store) error {
			return s.transact(ctx, func(*conn) error { return nil })
		},
		"query": insertOnce,
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		db := sqlx.NewDb(sql.OpenDB(lateAnswers{giveUp: giveUp, closed: new(int)}), "lateAnswers")
		t.Cleanup(func() { _ = db.Close() })
		if err := do(ctx, New(db, server, Options{})); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
	}
}

// uncomparable is a connection of a driver that wraps another. Values of its type cannot be
// compared.
type uncomparable struct {
	lateAnswers
	_ []any
}

func (r uncomparable) Connect(context.Context) (driver.Conn, error) { return r, nil }

func TestStatementsOfUnknownConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	server.Caps.OddSession = "" // it would be a statement, too
	closed := 0
	db := sqlx.NewDb(sql.OpenDB(uncomparable{lateAnswers: lateAnswers{giveUp: func() {}, closed: &closed}}), "lateAnswers")
	defer db.Close()
	s := New(db, server, Options{})
	for range 3 {
		if err := insertOnce(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if closed != 3 {
		t.Errorf("%d of 3 statements were closed", closed)
	}
}

// TestCommitOfABusyDatabaseLeavesNoTransaction: SQLite refuses a commit while another
// connection reads, and the transaction continues.
func TestCommitOfABusyDatabaseLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	dsn := "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "busy.db")) + "?_pragma=busy_timeout(1)" // SQLite's default journal
	open := func() *sqlx.DB {
		db, err := sqlx.Open("sqlite", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(1)
		return db
	}
	db, other := open(), open()
	s := migrated(t, db)
	reader, err := other.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := reader.Get(&n, "select count(*) from falldue_tasks"); err != nil {
		t.Fatal(err)
	}
	put := func(c *conn) error {
		stmt := statements.PutPolicy(s.server, s.tables)
		_, err := c.exec(t.Context(), stmt, statements.Values{"key": "k", "policy": "delay 1s"}, nil)
		return err
	}
	if err := s.transact(t.Context(), put); s.server.Classify(err) != dialect.Contention {
		t.Fatalf("beside a reader the commit gave %v", err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.transact(t.Context(), put); err != nil {
		t.Errorf("the next transaction on that connection: %v", err)
	}
}

// TestUndoneTransactionsAreNoticed: a node of Galera that undoes a transaction while it prepares a SELECT
// reports no error. The statements that follow would commit by themselves.
func TestUndoneTransactionsAreNoticed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		if s.server.Caps.InTransaction == "" {
			return // the engine reports each such error
		}
		tries := 0
		_, err := inTx(t.Context(), s, func(x runner) (struct{}, error) {
			if tries++; tries == 1 {
				if err := x.(*conn).execText(t.Context(), "rollback"); err != nil {
					return struct{}{}, err
				}
			}
			_, err := x.exec(t.Context(), statements.PutPolicy(s.server, s.tables), statements.Values{"key": "k", "policy": "delay 1s"}, nil)
			return struct{}{}, err
		})
		if err != nil || tries != 2 {
			t.Errorf("a transaction that was undone: %d tries, error %v, want 2 and none", tries, err)
		}
	})
}

// TestDeadConnectionsAreTriedOnceEach: all connections of a pool may be dead, and the next
// new one, too.
func TestDeadConnectionsAreTriedOnceEach(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	db := sqlx.NewDb(sql.OpenDB(deadOnArrival{&tries}), "mysql")
	defer db.Close()
	s := New(db, server, Options{})
	if err := s.transact(t.Context(), func(*conn) error { return nil }); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("error %v, want %v", err, driver.ErrBadConn)
	}
	if tries > 2 {
		t.Errorf("%d connections were opened, one after the other", tries)
	}
}

// deadOnArrival is a server whose connections break at their first statement.
type deadOnArrival struct{ tries *int }

func (d deadOnArrival) Connect(context.Context) (driver.Conn, error) { *d.tries++; return d, nil }
func (deadOnArrival) Driver() driver.Driver                          { return nil }
func (deadOnArrival) Prepare(string) (driver.Stmt, error)            { return nil, driver.ErrBadConn }
func (deadOnArrival) Begin() (driver.Tx, error)                      { return nil, driver.ErrBadConn }
func (deadOnArrival) Close() error                                   { return nil }

func (deadOnArrival) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, driver.ErrBadConn
}

// TestNumbersOfDelaysAreNeverUsedAgain: a claim may have a number while another one
// makes room for more.
func TestNumbersOfDelaysAreNeverUsedAgain(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	s, seen := New(nil, server, Options{}), map[string]bool{}
	for i := range 2*maxMade + 1 {
		e, err := sqlgen.Parse(strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		f, err := sqlgen.Compile(e)
		if err != nil {
			t.Fatal(err)
		}
		number := s.numbersOf([]*Delay{NewDelay(f)})
		if seen[number] {
			t.Fatalf("the delay of %d s has the number of another one", i)
		}
		seen[number] = true
	}
}
