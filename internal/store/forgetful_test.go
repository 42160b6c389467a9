package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/falldue/falldue/dialect"
)

// forgetful is a connection to a pooler in transaction mode: another session prepared
// the statement.
type forgetful struct{ prepared *int }

func (f forgetful) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (forgetful) Driver() driver.Driver                          { return nil }
func (forgetful) Begin() (driver.Tx, error)                      { return nil, errors.ErrUnsupported }
func (forgetful) Close() error                                   { return nil }
func (f forgetful) Prepare(string) (driver.Stmt, error)          { *f.prepared++; return f, nil }
func (forgetful) NumInput() int                                  { return -1 }
func (forgetful) Exec([]driver.Value) (driver.Result, error)     { return nil, errors.ErrUnsupported }
func (forgetful) Query([]driver.Value) (driver.Rows, error)      { return nil, errors.ErrUnsupported }

func (forgetful) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return nil, &pq.Error{Code: "26000"}
}

// TestMissingStatementsAreExplained: a statement that is missing in its session is
// prepared once more. When it is missing again, the error says that a pooler may be the
// cause.
func TestMissingStatementsAreExplained(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	prepared := 0
	db := sqlx.NewDb(sql.OpenDB(forgetful{&prepared}), "forgetful")
	defer func() { _ = db.Close() }()
	if _, err := New(db, server, Options{}).Counts(t.Context()); !errors.Is(err, dialect.ErrTransactionPooling) {
		t.Errorf("error %v, want one that wraps ErrTransactionPooling", err)
	}
	if prepared != 2 {
		t.Errorf("the statement was prepared %d times, want twice", prepared)
	}
}
