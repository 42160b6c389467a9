package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// lockerOf returns the lock that lets one process at a time migrate. Every
// engine frees it by itself when the process that holds it dies.
func lockerOf(d dialect.Dialect, tables sqlgen.Tables) lock.SessionLocker {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tables.Name(d, "migrations")))
	switch d.Name() {
	case dialect.Postgres:
		return advisoryLock{key: int64(h.Sum32())}
	case dialect.SQLite:
		return fileLock{d}
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

// namedLock is that of MySQL and MariaDB. Its name holds for the whole server.
type namedLock struct{ name string }

func (l namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	return again(ctx, func() (bool, error) {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, "select get_lock(concat(left(database(), 20), ' ', ?), 1)", l.name).Scan(&got)
		return got.Int64 == 1, err
	})
}

func (l namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "do release_lock(concat(left(database(), 20), ' ', ?))", l.name)
	return err
}

// fileLock is SQLite's exclusive locking mode: once such a connection has
// written, no other may, until it has read in normal mode.
type fileLock struct{ d dialect.Dialect }

func (l fileLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	return again(ctx, func() (bool, error) {
		err := run(ctx, conn, "pragma locking_mode = exclusive", "begin exclusive", "commit")
		if err == nil {
			return true, nil
		}
		if unlockErr := l.SessionUnlock(ctx, conn); unlockErr != nil && l.d.Classify(unlockErr) != dialect.Contention {
			return false, unlockErr
		}
		if l.d.Classify(err) == dialect.Contention {
			return false, nil
		}
		return false, err
	})
}

func (l fileLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return run(ctx, conn, "pragma locking_mode = normal", "select count(*) from sqlite_schema")
}

func run(ctx context.Context, conn *sql.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
