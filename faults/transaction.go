package faults

import (
	"cmp"
	"context"
	"database/sql/driver"

	"github.com/jmoiron/sqlx"
)

// transaction is a transaction that discards its connection when the server refused
// to end it, as a node of a cluster without a majority does. database/sql returns such
// a connection to the pool, and the next statements would join the transaction.
type transaction struct {
	*sqlx.Tx
	ctx   context.Context
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
	return &transaction{Tx: tx, ctx: ctx, conn: conn}, nil
}

// Commit commits, and returns an error if the transaction's context has ended: lib/pq then cancels the commit, and
// PostgreSQL acknowledges it before its standby has it.
func (t *transaction) Commit() error {
	err := t.Tx.Commit()
	t.ended = err == nil
	return cmp.Or(err, t.ctx.Err())
}

func (t *transaction) Rollback() error {
	err := t.Tx.Rollback()
	t.ended = err == nil
	return err
}

// close rolls the transaction back if it has not ended, and returns the connection to
// the pool if that succeeds.
func (t *transaction) close() {
	if !t.ended && t.Rollback() != nil {
		discard(t.conn)
		return
	}
	_ = t.conn.Close()
}

// discard makes database/sql close a connection instead of keeping it.
func discard(conn *sqlx.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}
