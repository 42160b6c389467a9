package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// ErrTransactionPooling is wrapped by the errors of [Probe] for a connection to
// PostgreSQL that has no session of its own, as behind PgBouncer in transaction
// mode. Each transaction then gets any session that is free, which may lack what
// was prepared, or have what another process prepared. It wraps
// [ErrUnsupported].
var ErrTransactionPooling = fmt.Errorf("%w: the connection has no session of its own, which falldue needs for prepared statements and for the lock of its migrations; "+
	"connect to the server itself, or through a pooler that gives each connection one: with PgBouncer, pool_mode=session for this database", ErrUnsupported)

// connections is the part of *sql.DB that opens two connections to compare.
type connections interface {
	Conn(ctx context.Context) (*sql.Conn, error)
	Stats() sql.DBStats
}

// secondConnTimeout limits how long a check waits for a second connection, since
// the program may use all of them.
const secondConnTimeout = 2 * time.Second

// ownSession returns ErrTransactionPooling if a statement that one connection
// has prepared runs in another session while a second connection keeps the first
// session busy. It returns nil for a pool of one connection, or whose other
// connections are all in use.
func ownSession(ctx context.Context, db Queryer) error {
	pool, ok := db.(connections)
	if !ok || pool.Stats().MaxOpenConnections == 1 {
		return nil
	}
	for try := 1; ; try++ {
		// The pool may hold dead connections.
		err := compareSessions(ctx, pool)
		if !errors.Is(err, driver.ErrBadConn) || try == maxDeadConns {
			return err
		}
	}
}

// maxDeadConns is how many dead connections a check meets before it gives up.
const maxDeadConns = 100

// compareSessions is ownSession on connections that are assumed to be alive.
func compareSessions(ctx context.Context, pool connections) (err error) {
	defer func() {
		if err != nil && (postgres{}).Classify(err) == PreparedStatementMissing {
			err = fmt.Errorf("%w (%w)", ErrTransactionPooling, err)
		}
	}()
	one, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	waiting, cancel := context.WithTimeout(ctx, secondConnTimeout)
	defer cancel()
	two, err := pool.Conn(waiting)
	if err != nil {
		if ctx.Err() == nil && waiting.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { _ = two.Close() }()

	ask, err := one.PrepareContext(ctx, whichSession)
	if err != nil {
		return err
	}
	defer func() { _ = ask.Close() }()
	var first, second, again string
	if err := ask.QueryRowContext(ctx).Scan(&first); err != nil {
		return err
	}
	tx, err := two.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, whichSession).Scan(&second); err != nil {
		return err
	}
	// Several times, since other processes take and free sessions in between.
	for range 4 {
		if err := ask.QueryRowContext(ctx).Scan(&again); err != nil {
			return err
		}
		if first == second || first != again {
			return ErrTransactionPooling
		}
	}
	return nil
}

// whichSession identifies a session, even among those of several servers.
const whichSession = "select pg_backend_pid()::text || ' '::text || pg_postmaster_start_time()::text"
