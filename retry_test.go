package falldue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
)

// nodes is a cluster behind one address: the first connection leads to a node
// without a majority, which answers and serves nothing, the others to one with.
type nodes struct{ opened int }

func (n *nodes) Driver() driver.Driver { return nil }

func (n *nodes) Connect(context.Context) (driver.Conn, error) {
	n.opened++
	return node{serves: n.opened > 1}, nil
}

type node struct{ serves bool }

var errNotWanted = errors.New("not wanted")

func (node) Prepare(string) (driver.Stmt, error) { return nil, errNotWanted }
func (node) Begin() (driver.Tx, error)           { return nil, errNotWanted }
func (node) Close() error                        { return nil }

func (n node) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	if !n.serves {
		return nil, &mysql.MySQLError{Number: 1047, Message: "WSREP has not yet prepared node for application use"}
	}
	return driver.RowsAffected(0), nil
}

func TestConnectionToAServerThatDoesNotServeIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	server, err := dialect.Typical(dialect.MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(&nodes{}), "mysql")
	defer db.Close()
	s := &store{db: db, server: server}
	try := func() error {
		return s.retry(t.Context(), func() error {
			_, err := db.ExecContext(t.Context(), "do 1")
			return err
		})
	}
	if err := try(); server.Classify(err) != dialect.Disconnected {
		t.Fatalf("the node without a majority gave the error %v", err)
	}
	if err := try(); err != nil {
		t.Errorf("the next try was led to the same node: %v", err)
	}
}
