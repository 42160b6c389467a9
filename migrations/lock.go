package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3/lock"

	"github.com/falldue/falldue/dialect"
)

// lockerOf returns the lock that lets one process at a time migrate. The
// server frees it when the session that holds it ends. It is nil for a server
// without such locks: there a migration must be one transaction, whose version
// number only one process can write.
func lockerOf(s dialect.Server, tables dialect.Tables) (lock.SessionLocker, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tables.Name(s, "migrations")))
	switch s.Caps.Locks {
	case dialect.AdvisoryLocks:
		return advisoryLock{key: int64(h.Sum32())}, nil
	case dialect.NamedLocks:
		return namedLock{name: fmt.Sprintf("falldue migrations %08x", h.Sum32())}, nil
	case dialect.NoLocks:
		return nil, nil
	}
	return nil, fmt.Errorf("migrations: Caps of %s name no kind of locks", s.Name())
}

// retryEvery is the pause between two tries to get a lock that is held.
const retryEvery = 50 * time.Millisecond

// again calls try until it succeeds, fails, or ctx ends.
func again(ctx context.Context, try func() (bool, error)) error {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another process to finish its migration: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// advisoryLock is an advisory lock of PostgreSQL. It is polled: a statement that
// waited for it would hold a snapshot, for which CREATE INDEX waits.
type advisoryLock struct{ key int64 }

func (l advisoryLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	return again(ctx, func() (ok bool, err error) {
		err = conn.QueryRowContext(ctx, "select pg_try_advisory_lock($1)", l.key).Scan(&ok)
		return ok, err
	})
}

func (l advisoryLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "select pg_advisory_unlock($1)", l.key)
	return err
}

// namedLock is a lock of GET_LOCK, as MySQL, MariaDB and TiDB have it. Its name
// holds for all databases of the server.
type namedLock struct{ name string }

// SessionLock waits for the lock.
//
// While many sessions wait, TiDB reports that the lock is held by an error that
// has the code of unknown errors. SessionLock therefore ignores that code for a
// limited number of tries.
func (l namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	const unknown, most = 1105, 60
	failures := 0
	return again(ctx, func() (bool, error) {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, "select get_lock(concat(left(database(), 20), ' ', ?), 1)", l.name).Scan(&got)
		if my, ok := errors.AsType[*mysql.MySQLError](err); ok && my.Number == unknown && failures < most {
			failures++
			return false, nil
		}
		return got.Int64 == 1, err
	})
}

func (l namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "do release_lock(concat(left(database(), 20), ' ', ?))", l.name)
	return err
}
