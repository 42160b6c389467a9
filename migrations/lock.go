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
// engine frees it by itself when the process that holds it dies. SQLite has no
// such lock, and needs none: there a migration is one transaction, whose
// version number only one process can write.
func lockerOf(d dialect.Dialect, tables dialect.Tables) lock.SessionLocker {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tables.Name(d, "migrations")))
	switch d.Name() {
	case dialect.Postgres:
		return advisoryLock{key: int64(h.Sum32())}
	case dialect.SQLite:
		return nil
	default:
		return namedLock{name: fmt.Sprintf("falldue migrations %08x", h.Sum32())}
	}
}

// retryEvery is the pause between two looks at a lock that someone holds.
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
			return fmt.Errorf("wait for another process that migrates: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// advisoryLock is PostgreSQL's. It is tried again and again, not waited for:
// a waiting statement would hold a snapshot that CREATE INDEX waits for.
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

// namedLock is that of MySQL, MariaDB and TiDB. Its name holds for the whole
// server.
type namedLock struct{ name string }

// SessionLock waits for the lock.
//
// Where many wait, TiDB says with an error of no code of its own that somebody
// has the lock. That it has failed for good shows when it does not stop.
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
