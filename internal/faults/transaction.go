package faults

import (
	"context"
	"database/sql/driver"

	"github.com/jmoiron/sqlx"
)

// transaction is one of a process that takes care of what database/sql does not:
// a connection goes back to the pool also when its server refused to end the
// transaction, as a node of a cluster without a majority does, and what came
// next would go into it.
type transaction struct {
	*sqlx.Tx
	conn  *sqlx.Conn
	ended bool
}

func begin(ctx context.Context, db *sqlx.DB) (*transaction, error) {
	conn, err := db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTxx(ctx, nil)
	if err != nil {
		discard(conn)
		return nil, err
	}
	return &transaction{Tx: tx, conn: conn}, nil
}

func (t *transaction) Commit() error {
	err := t.Tx.Commit()
	t.ended = err == nil
	return err
}

func (t *transaction) Rollback() error {
	err := t.Tx.Rollback()
	t.ended = err == nil
	return err
}

// close rolls back what has not ended, and gives the connection back only if it
// has then.
func (t *transaction) close() {
	if !t.ended && t.Rollback() != nil {
		discard(t.conn)
		return
	}
	_ = t.conn.Close()
}

// discard makes database/sql forget a connection.
func discard(conn *sqlx.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}
