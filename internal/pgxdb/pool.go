// Package pgxdb makes a database of database/sql that uses the connections of a
// pgxpool.Pool. Each use takes a connection from the pool and gives it back, so that
// falldue and the application share the pool as equals.
//
// stdlib.OpenDBFromPool of pgx does that too, but its driver forgets a connection when
// it gives it back, and has no COPY. Here a connection of the pool is the same
// connection of the driver each time, so that its statements stay prepared.
package pgxdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
)

// databases are the open databases by their pools. All queues on a pool have one, since
// the workers of a database share a reserve.
//
//nolint:gochecknoglobals // so are the pools
var databases = struct {
	mu sync.Mutex
	on map[*pgxpool.Pool]*database
}{on: map[*pgxpool.Pool]*database{}}

// database is a database on a pool, and the number of its users.
type database struct {
	*sql.DB
	users int
}

// Open returns the database on a pool. Each call needs a call of [Close] when the database
// is not used any more.
func Open(pool *pgxpool.Pool) *sql.DB {
	databases.mu.Lock()
	defer databases.mu.Unlock()
	db := databases.on[pool]
	if db == nil {
		db = &database{DB: sql.OpenDB(NewConnector(pool))}
		db.SetMaxOpenConns(int(pool.Config().MaxConns))
		db.SetMaxIdleConns(0) // the pool keeps them
		databases.on[pool] = db
	}
	db.users++
	return db.DB
}

// Close closes the database on a pool, unless another queue has opened it, too. It leaves
// the pool open.
func Close(pool *pgxpool.Pool) {
	databases.mu.Lock()
	defer databases.mu.Unlock()
	db := databases.on[pool]
	if db.users--; db.users == 0 {
		delete(databases.on, pool)
		_ = db.Close()
	}
}

// Connector takes connections from a pool.
type Connector struct {
	pool   *pgxpool.Pool
	byName bool // statements are prepared by name
}

// NewConnector returns a connector on a pool. Statements are prepared by name only if pgx
// does so for the statements of the application too. Where it does not, a session may lose
// them: AfterRelease of the pool may reset it, or a pooler give its statements to others.
func NewConnector(pool *pgxpool.Pool) *Connector {
	return &Connector{pool, pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement}
}

// Connect takes a connection from the pool.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	held, err := c.pool.Acquire(ctx)
	switch {
	case errors.Is(err, puddle.ErrClosedPool):
		return nil, fmt.Errorf("%w: %w", net.ErrClosed, err) // which has no code
	case err != nil:
		return nil, err
	}
	const key = "github.com/falldue/falldue"
	known := held.Conn().PgConn().CustomData()
	dc, ok := known[key].(*conn)
	if !ok {
		dc = &conn{pgx: held.Conn(), byName: c.byName}
		known[key] = dc
	}
	dc.held, dc.keep = held, false
	return dc, nil
}

// Driver returns the driver of this pool alone.
func (c *Connector) Driver() driver.Driver { return poolDriver{c.pool} }

// poolDriver is the driver of a pool.
type poolDriver struct{ pool *pgxpool.Pool }

// Open implements [driver.Driver].
func (poolDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("pgxdb: connections come from the pool, not from a DSN")
}

// DiscardIdle closes idle connections, without pinging them first, as an Acquire pings
// connections that have been idle for a second.
func (d poolDriver) DiscardIdle(ctx context.Context) {
	for _, held := range d.pool.AcquireAllIdle(ctx) {
		HangUp(held.Conn())
		held.Release()
	}
}

// Stats returns the state of the whole pool. database/sql sees only its own uses of it.
func (d poolDriver) Stats() sql.DBStats {
	s := d.pool.Stat()
	return sql.DBStats{
		MaxOpenConnections: int(s.MaxConns()), OpenConnections: int(s.TotalConns()),
		InUse: int(s.AcquiredConns() + s.ConstructingConns()),
	}
}
