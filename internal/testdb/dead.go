package testdb

import (
	"context"
	"database/sql/driver"
)

// Dead is a server that accepts connections and never answers, for [sql.OpenDB].
type Dead struct {
	driver.Conn
	id *int // makes connections differ
}

// Connect returns a connection.
func (Dead) Connect(context.Context) (driver.Conn, error) { return Dead{id: new(int)}, nil }

// Driver returns nil.
func (Dead) Driver() driver.Driver { return nil }

// Close does nothing.
func (Dead) Close() error { return nil }

// PrepareContext waits until ctx ends.
func (Dead) PrepareContext(ctx context.Context, _ string) (driver.Stmt, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
