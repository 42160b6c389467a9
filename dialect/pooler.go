package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/dsn"
)

// ErrTransactionPooling means that the driver's settings cannot work behind a pooler in transaction
// mode. [Probe], [PoolTransactions] and statements return it, wrapped. Such a pooler gives each
// transaction any free session. The session may lack the statements that the driver prepared, or have
// statements of another process. ErrTransactionPooling wraps [ErrUnsupported].
var ErrTransactionPooling = fmt.Errorf("%w: a pooler gives each transaction any free session (transaction mode), and the driver sends a statement and its arguments in several steps; "+
	"add binary_parameters=yes to the DSN of lib/pq, or default_query_exec_mode=exec to the DSN of pgx, and set Config.TransactionPooling if New does not detect the pooler", ErrUnsupported)

// PoolTransactions returns the description of s behind a pooler in transaction mode,
// with [Caps].TransactionPooling set. [Probe] calls it when it detects such a pooler. The error
// wraps [ErrTransactionPooling] if the driver of db does not send a statement with
// its arguments in one step, and [ErrUnsupported] for an engine other than
// PostgreSQL.
func PoolTransactions(ctx context.Context, db Queryer, s Server) (Server, error) {
	if s.Name() != Postgres {
		return s, fmt.Errorf("%w: %s behind a pooler in transaction mode; TransactionPooling is only for PostgreSQL", ErrUnsupported, s.Name())
	}
	if err := sendsInOneStep(ctx, db); err != nil {
		return s, err
	}
	s.Caps.TransactionPooling = true
	return s, nil
}

// stepChecks is how often sendsInOneStep checks: a session parses a statement again if others have changed tables since.
const stepChecks = 3

// sendsInOneStep returns an error if the driver does not parse and run a statement in
// one transaction. PostgreSQL replaces 'now' by the begin of the transaction when it
// parses a statement. A pooler may change the session between two transactions.
func sendsInOneStep(ctx context.Context, db Queryer) error {
	for range stepChecks {
		if err := checkStep(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// checkStep is one check of sendsInOneStep. The number makes the text of each check differ, since a session that kept
// the statement could parse it again when it runs it.
func checkStep(ctx context.Context, db Queryer) error {
	var inOne bool
	query := fmt.Sprintf("select 'now'::timestamptz = transaction_timestamp() and $1::boolean /* %d */", rand.Uint64())
	err := db.QueryRowContext(ctx, query, true).Scan(&inOne)
	switch {
	case err != nil && (postgres{}).Classify(err) == PreparedStatementMissing:
		return fmt.Errorf("%w (%w)", ErrTransactionPooling, err)
	case err != nil:
		return fmt.Errorf("dialect: query through the pooler: %w", dsn.Hide(err))
	case !inOne:
		return ErrTransactionPooling
	}
	return nil
}

// connections is the part of *sql.DB that opens two connections to compare.
type connections interface {
	Conn(ctx context.Context) (*sql.Conn, error)
	Stats() sql.DBStats
}

// secondConnTimeout limits how long a check waits for a second connection of a pool with a
// limit, since the program may use all of them.
const secondConnTimeout = 2 * time.Second

// sharesSessions reports whether two connections share sessions, or one changes its
// session. It reports false for a pool of one connection, or whose other connections
// are all in use.
func sharesSessions(ctx context.Context, db Queryer) (bool, error) {
	pool, ok := db.(connections)
	if !ok || pool.Stats().MaxOpenConnections == 1 {
		return false, nil
	}
	for try := 1; ; try++ {
		shared, err := compareSessions(ctx, pool)
		switch {
		case err != nil && (postgres{}).Classify(err) == PreparedStatementMissing:
			return true, nil // pgx prepares statements by default: another session ran this one
		case !errors.Is(err, driver.ErrBadConn) || try == maxDeadConns: // the pool may hold dead connections
			return shared, err
		}
	}
}

// maxDeadConns is how many dead connections a check meets before it gives up.
const maxDeadConns = 100

// compareSessions is sharesSessions on connections that are assumed to be alive.
func compareSessions(ctx context.Context, pool connections) (shared bool, err error) {
	one, err := pool.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = one.Close() }()
	waiting := ctx
	if pool.Stats().MaxOpenConnections > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, secondConnTimeout)
		defer cancel()
	}
	two, err := pool.Conn(waiting)
	if err != nil {
		if ctx.Err() == nil && waiting.Err() != nil {
			return false, nil
		}
		return false, err
	}
	defer func() { _ = two.Close() }()

	a, b := &holder{conn: one}, &holder{conn: two}
	defer a.free()
	defer b.free()
	if _, err := a.hold(ctx); err != nil {
		return false, err
	}
	a.free()
	if _, err := b.hold(ctx); err != nil || b.session == a.session {
		return err == nil, err
	}
	if changed, err := a.hold(ctx); err != nil || changed {
		return changed, err
	}
	// A pooler gives away the session that was freed last, or the one that was freed
	// first. Other processes may take sessions in between.
	for i := range exchanges {
		order := [2]*holder{a, b}
		order[i%2].free()
		order[1-i%2].free()
		for _, h := range []*holder{a, b} {
			if changed, err := h.hold(ctx); err != nil || changed {
				return changed, err
			}
		}
	}
	return false, nil
}

// exchanges is how often a check frees both sessions and looks which it gets next. With
// two of them, one check in hundreds missed a pooler alongside busy clients.
const exchanges = 6

// holder is a connection that holds a session by a transaction.
type holder struct {
	conn    *sql.Conn
	tx      *sql.Tx
	session string // that it first held
}

// hold begins a transaction, and reports whether it is in another session than the first.
func (h *holder) hold(ctx context.Context) (changed bool, err error) {
	if h.tx, err = h.conn.BeginTx(ctx, nil); err != nil {
		return false, err
	}
	session, err := sessionOf(ctx, h.tx)
	h.session = cmp.Or(h.session, session)
	return session != h.session, err
}

// free ends the transaction, if there is one.
func (h *holder) free() {
	if h.tx != nil {
		_ = h.tx.Rollback() // the next transaction reports what is wrong with the connection
		h.tx = nil
	}
}

// sessionOf identifies the session of a statement, even among sessions of several servers.
func sessionOf(ctx context.Context, db Queryer) (session string, err error) {
	err = db.QueryRowContext(ctx, "select pg_backend_pid()::text || ' '::text || pg_postmaster_start_time()::text").Scan(&session)
	return session, err
}
