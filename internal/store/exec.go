package store

// The ways to run statements:
//
//	way         for                          sent                                 prepared             transaction
//	read        a statement that only reads  again if its connection was dead     on its connection    none
//	once        a single statement           at most once                         on its connection    none
//	inTx        several statements           all of them again after contention   on its connection    its own
//	transact    COPY                         at most once                         on its connection    its own
//	seldom      a statement that only reads  again if its connection was dead     never                none
//	unprepared  the caller's transaction     once                                 never                the caller's
//
// All but the last use a connection of the pool through the driver ([conn]). Outside a
// transaction, database/sql sends a statement again when a driver calls its connection
// bad. lib/pq does so even if the statement was sent and only the answer was lost. A
// task would be stored twice, or a claim made that no worker knows of.
//
// Where a session reads uncommitted rows (Caps.DirtyReads), read, once and seldom begin a
// transaction, too.
//
// Behind a pooler in transaction mode nothing is prepared ([pooled]).
//
// write wraps once and inTx, and Retry wraps read: they run the statements again after
// contention. Where the database has one writer at a time, write queues up the writers of
// this process.

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// runner runs a statement.
type runner interface {
	// query calls f for each row of the result. The row is valid until f returns.
	query(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error
	// exec runs a statement that returns no rows.
	exec(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) (sql.Result, error)
}

// int64s returns the integers in the first column of a result.
func int64s(ctx context.Context, x runner, stmt statements.Stmt, values statements.Values, rows []statements.Row) (list []int64, err error) {
	err = x.query(ctx, stmt, values, rows, func(r row) error {
		n, err := r.int(0)
		list = append(list, n)
		return err
	})
	return list, err
}

// read runs a statement that changes nothing, and calls f for each row. reset
// is called before each try.
func (s *Store) read(ctx context.Context, stmt statements.Stmt, values statements.Values, reset func(), f func(row) error) error {
	return s.readRows(ctx, stmt, values, nil, reset, f)
}

// readRows is read for a statement that takes a batch.
func (s *Store) readRows(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, reset func(), f func(row) error) error {
	return s.Retry(ctx, func() error {
		return s.onReader(ctx, func(c *conn) error {
			if err := c.use.unlessAbandoned(func(row) error { reset(); return nil })(nil); err != nil {
				return err
			}
			return c.query(ctx, stmt, values, rows, func(r row) error {
				c.sent = true
				return f(r)
			})
		})
	})
}

// reading returns the result of fn, which sends statements that change nothing.
func reading[T any](ctx context.Context, s *Store, fn func(runner) (T, error)) (T, error) {
	return resultOf(fn, func(fn func(runner) error) error {
		return s.Retry(ctx, func() error {
			return s.onReader(ctx, func(c *conn) error { return fn(c) })
		})
	})
}

// onReader calls fn with a connection for statements that change nothing. Where a session
// reads uncommitted rows, fn runs in a transaction, which reads only committed rows.
func (s *Store) onReader(ctx context.Context, fn func(*conn) error) error {
	if s.server.Caps.DirtyReads {
		return s.transact(ctx, fn)
	}
	return s.onConn(ctx, fn)
}

// resultOf returns the result of fn, which run runs. There is no result after an error: the
// commit may have failed, or fn may still be running.
func resultOf[T any](fn func(runner) (T, error), run func(func(runner) error) error) (T, error) {
	var result, none T
	err := run(func(x runner) (err error) {
		result, err = fn(x)
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

// seldom runs a statement that changes nothing and that runs so seldom that it is not
// kept prepared, and calls f for each row.
func (s *Store) seldom(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	return s.onReader(ctx, func(c *conn) error {
		return c.queryAnew(ctx, stmt, values, rows, func(r row) error {
			c.sent = true
			return f(r)
		})
	})
}

// once runs fn, which sends a single statement. It begins a transaction only where the
// statement would otherwise read uncommitted rows.
func once[T any](ctx context.Context, s *Store, fn func(runner) (T, error)) (T, error) {
	if s.server.Caps.DirtyReads {
		return inTx(ctx, s, fn)
	}
	return writing(ctx, s, fn, s.single)
}

// inTx runs fn in a transaction of its own, and runs it again in another one after
// contention.
func inTx[T any](ctx context.Context, s *Store, fn func(runner) (T, error)) (T, error) {
	return writing(ctx, s, fn, func(ctx context.Context, fn func(runner) error) error {
		return s.transact(ctx, func(c *conn) error { return fn(c) })
	})
}

// writing returns the result of fn, which run runs.
func writing[T any](ctx context.Context, s *Store, fn func(runner) (T, error), run func(context.Context, func(runner) error) error) (T, error) {
	return resultOf(fn, func(fn func(runner) error) error {
		return s.write(ctx, func() error { return run(ctx, fn) })
	})
}

// single runs fn, which sends a single statement, on a connection of the pool.
func (s *Store) single(ctx context.Context, fn func(runner) error) error {
	return s.onConn(ctx, func(c *conn) error {
		return s.unlessCancelled(ctx, fn(single{c}))
	})
}

// transact runs fn in a transaction. The connection goes back to the pool only if the
// transaction has certainly ended and the session holds no lock. A server that refuses
// all statements, such as a node of a cluster without a majority, refuses ROLLBACK and
// COMMIT too. The next statements on such a connection would run in the transaction,
// or commit it half done.
func (s *Store) transact(ctx context.Context, fn func(*conn) error) error {
	return s.onConn(ctx, func(c *conn) error {
		if err := c.begin(ctx, s.server); err != nil {
			c.broken = true
			return err
		}
		c.sent = true
		end, cancel := s.endContext(ctx)
		defer cancel()
		err := fn(c)
		if err != nil {
			c.broken = c.execText(end, "rollback") != nil || errors.Is(err, errHoldsSlot)
			return err
		}
		err = c.execText(end, "commit")
		// A server that undid the transaction has ended it. Where the database has one
		// writer at a time, the transaction is still there.
		undone := s.server.Classify(err) == dialect.Contention && !s.server.Caps.SingleWriter
		c.broken = err != nil && !undone && c.execText(end, "rollback") != nil
		return s.unlessCancelled(ctx, err)
	})
}

// endContext returns a context for the end of a transaction. It ends cancelDelay after
// ctx: a commit that is cut off leaves open whether it took effect.
func (s *Store) endContext(ctx context.Context) (context.Context, context.CancelFunc) {
	end := context.WithoutCancel(ctx)
	if ctx.Done() == nil || s.server.Caps.Embedded {
		return end, func() {}
	}
	end, cancel := context.WithCancel(end)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(cancelDelay, cancel) })
	return end, func() {
		stop()
		cancel()
	}
}

// unlessCancelled returns err, the error of a statement that may have committed. If err is
// nil, it returns the error of ctx on servers that report success for a cancelled commit.
// When lib/pq cancels a commit that waits for a standby, PostgreSQL stops waiting and
// reports success. That commit would not survive the loss of the server.
func (s *Store) unlessCancelled(ctx context.Context, err error) error {
	if err == nil && s.server.Caps.CancelledCommitSucceeds {
		return ctx.Err()
	}
	return err
}

// contentionTries is how often a transaction is tried if contention undoes it. A
// deadlock has one victim, so a few tries are enough. If contention lasts longer, its
// error is returned.
const contentionTries = 10

// Retry runs fn, and runs it again after contention, or once after an error of a
// prepared statement that had become invalid. It does not run fn again after any other
// error, since fn may have taken effect then.
func (s *Store) Retry(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil {
			return nil
		}
		tries := 1
		switch s.Classify(err) {
		case dialect.Contention:
			tries = contentionTries
		case dialect.StatementStale, dialect.PreparedStatementMissing:
			tries = 2
		case dialect.Disconnected, dialect.ReadOnly:
			if ctx.Err() == nil { // otherwise the error is ctx's
				s.discardIdle()
			}
		}
		if try >= tries || !s.backOff(ctx, try) {
			return s.explain(err)
		}
	}
}

// write is like Retry, for an fn that writes. Where the database has one writer at a
// time, the writers of this process queue up here. SQLite instead makes a writer that
// finds the database locked sleep, and gives the lock to the next one that asks.
func (s *Store) write(ctx context.Context, fn func() error) error {
	if !s.server.Caps.SingleWriter {
		return s.Retry(ctx, fn)
	}
	select {
	case s.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.writer }()
	return s.Retry(ctx, fn)
}
