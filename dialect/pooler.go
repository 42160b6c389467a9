package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// ErrTransactionPooling is wrapped where a connection to PostgreSQL has no session of its
// own, as behind PgBouncer in transaction mode: each transaction gets whichever
// session is free, and what was prepared is in another, or is there what another
// process prepared. It wraps [ErrUnsupported].
var ErrTransactionPooling = fmt.Errorf("%w: the connection has no session of its own, which falldue needs for prepared statements and for the lock of its migrations; "+
	"connect to the server itself, or through a pooler that gives each connection one: with PgBouncer, pool_mode=session for this database", ErrUnsupported)

// connections are the parts of *sql.DB by which two connections are told apart.
type connections interface {
	Conn(ctx context.Context) (*sql.Conn, error)
	Stats() sql.DBStats
}

// secondTime is how long a check waits for a second connection, which others of
// the program may hold.
const secondTime = 2 * time.Second

// ownSession returns ErrShared where a statement that one connection prepared
// runs in another session once a second connection keeps the first one's busy.
// A pool of one connection, or whose others are all in use, goes unchecked.
func ownSession(ctx context.Context, db Queryer) error {
	pool, ok := db.(connections)
	if !ok || pool.Stats().MaxOpenConnections == 1 {
		return nil
	}
	for try := 1; ; try++ {
		// The pool may hold connections that died meanwhile.
		err := compareSessions(ctx, pool)
		if !errors.Is(err, driver.ErrBadConn) || try == deadTries {
			return err
		}
	}
}

// deadTries is how many times a check is begun on a dead connection.
const deadTries = 100

// compareSessions does the work of ownSession.
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
	waiting, cancel := context.WithTimeout(ctx, secondTime)
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
	// Other processes may take and free sessions in between.
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

// whichSession names a session, among those of several servers too.
const whichSession = "select concat(pg_backend_pid(), ' ', pg_postmaster_start_time())"
