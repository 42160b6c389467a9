package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/mysqlerror"
)

// lockerOf returns the lock that lets one process at a time migrate. The
// server frees it when the session that holds it ends. It is nil for a server
// without such locks: there a migration must be one transaction, whose version
// number only one process can write. It is nil behind a pooler in transaction mode,
// too: see lockInTx.
func lockerOf(s dialect.Server, tables dialect.Tables, most time.Duration) (lock.SessionLocker, error) {
	switch s.Caps.Locks {
	case dialect.AdvisoryLocks:
		if s.Caps.TransactionPooling {
			return nil, nil
		}
		return advisoryLock{lockKey(s, tables), most}, nil
	case dialect.NamedLocks:
		return namedLock{fmt.Sprintf("falldue migrations %08x", lockKey(s, tables)), most}, nil
	case dialect.NoLocks:
		return nil, nil
	}
	return nil, fmt.Errorf("migrations: Caps.Locks of %s is none of NoLocks, AdvisoryLocks and NamedLocks", s.Name())
}

// lockKey returns the number that identifies the lock of the tables.
func lockKey(s dialect.Server, tables dialect.Tables) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tables.Name(s, "migrations")))
	return int64(h.Sum32())
}

const (
	// retryEvery is the pause between two tries to get a lock that is held.
	retryEvery = 50 * time.Millisecond
	// lockTimeout is how long a process waits for others that migrate.
	lockTimeout = 5 * time.Minute
)

// again calls try until it succeeds, fails, ctx ends, or most has passed.
func again(ctx context.Context, most time.Duration, try func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("gave up after %v", most))
	defer cancel()
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another process to finish its migration: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// locked adds to the error of a wait for a lock what is known of its holder. The
// statement returns a text. It may fail, or return none: not all engines and roles
// show who holds a lock.
func locked(ctx context.Context, err error, db rowQueryer, lock, holder string, args ...any) error {
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var who sql.NullString
	if db.QueryRowContext(ctx, holder, args...).Scan(&who) != nil || !who.Valid {
		who.String = "another session"
	}
	return fmt.Errorf("%w: %s is held by %s; end that session if it is not migrating", err, lock, who.String)
}

// ErrLockLost means that the session of a [Migrator] no longer held the migration lock after the
// migrations had run. A connection pooler may have switched to another session. Test for it with errors.Is.
var ErrLockLost = errors.New("the lock was lost during the migration, and another process may have migrated at the same time; migrate through a connection that keeps its session")

// unlock releases a lock by a statement that returns 1 if the session had the lock.
func unlock(ctx context.Context, conn *sql.Conn, release string, lock any) error {
	var had sql.NullInt64
	err := conn.QueryRowContext(ctx, release, lock).Scan(&had)
	if err == nil && had.Int64 != 1 {
		return ErrLockLost
	}
	return err
}

// rowQueryer is a *sql.Conn or a *sql.DB.
type rowQueryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// advisoryLock is an advisory lock of PostgreSQL. It is polled: a statement that
// waited for it would hold a snapshot, for which CREATE INDEX waits.
type advisoryLock struct {
	key  int64
	most time.Duration
}

func (l advisoryLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	err := again(ctx, l.most, func() (ok bool, err error) {
		err = conn.QueryRowContext(ctx, "select pg_try_advisory_lock($1::bigint)", l.key).Scan(&ok)
		return ok, err
	})
	return l.locked(ctx, err, conn)
}

// lockInTx takes the same lock behind a pooler in transaction mode, where no lock
// outlives its transaction. The transaction is on a connection of its own, apart from the
// migrations, and idle while they run.
func (l advisoryLock) lockInTx(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	if db.Stats().MaxOpenConnections == 1 {
		return nil, errors.New("behind a pooler in transaction mode, a migration needs two connections, but the pool allows one: raise SetMaxOpenConns, or pool_max_conns of pgx")
	}
	var tx *sql.Tx
	unlock = func() { _ = tx.Rollback() } // an error means that it has ended
	err = again(ctx, l.most, func() (ok bool, err error) {
		if tx, err = db.BeginTx(ctx, nil); err != nil {
			return false, err
		}
		if _, err = tx.ExecContext(ctx, "set local idle_in_transaction_session_timeout = 0"); err == nil {
			err = tx.QueryRowContext(ctx, "select pg_try_advisory_xact_lock($1::bigint)", l.key).Scan(&ok)
		}
		if !ok {
			unlock()
		}
		return ok, err
	})
	return unlock, l.locked(ctx, err, db)
}

// locked adds to an error who holds the lock.
func (l advisoryLock) locked(ctx context.Context, err error, db rowQueryer) error {
	return locked(ctx, err, db, fmt.Sprintf("advisory lock %d", l.key), advisoryHolder, l.key)
}

// advisoryHolder selects who holds an advisory lock. It takes care of the types of
// arguments.
const advisoryHolder = `
select pg_catalog.concat('server process ', l.pid, ' (user ', a.usename, ', application ', a.application_name, ', address ', a.client_addr, ', ', a.state, ')')
from pg_locks l left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.classid::bigint = 0 and l.objid::bigint = $1::bigint
and l.database = (select oid from pg_database where datname = current_database())`

func (l advisoryLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return unlock(ctx, conn, "select pg_advisory_unlock($1::bigint)::int", l.key)
}

// namedLock is a lock of GET_LOCK, as MySQL, MariaDB and TiDB have it. Its name
// holds for all databases of the server.
type namedLock struct {
	name string
	most time.Duration
}

// fullName is the expression of a named lock's whole name, with one parameter.
const fullName = "concat(left(database(), 20), ' ', ?)"

// SessionLock waits for the lock.
//
// While many sessions wait, TiDB reports that the lock is held by an error that
// has the code of unknown errors. SessionLock therefore ignores that code for a
// limited number of tries.
func (l namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	const unknown, tries = 1105, 60
	failures := 0
	err := again(ctx, l.most, func() (bool, error) {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, "select get_lock("+fullName+", 1)", l.name).Scan(&got)
		if number, _ := mysqlerror.Number(err); number == unknown && failures < tries {
			failures++
			return false, nil
		}
		return got.Int64 == 1, err
	})
	// TiDB's IS_USED_LOCK returns 1 for any session, which the list of sessions does not have.
	return locked(ctx, err, conn, fmt.Sprintf("the named lock %q, after the name of the database,", l.name), `
select concat('connection ', p.id, ' (user ', p.user, ', host ', p.host, ')')
from (select is_used_lock(`+fullName+`) as id) h join information_schema.processlist p on p.id = h.id`, l.name)
}

func (l namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return unlock(ctx, conn, "select release_lock("+fullName+")", l.name)
}
