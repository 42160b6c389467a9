package falldue

import (
	"context"
	"database/sql/driver"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/dialect"
)

var errBadConn = driver.ErrBadConn

// contentionTries is how often a transaction is run that contention undoes.
// Deadlocks pick one victim, so that a few tries are enough; a database that
// is busy for longer is reported.
const contentionTries = 10

// retry runs fn again when contention undid it. Nothing else is retried here:
// after any other error it is not known what took effect.
func (s *store) retry(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil {
			return nil
		}
		class := s.server.Classify(err)
		if class == dialect.Disconnected {
			s.discard(ctx)
		}
		if class != dialect.Contention || try == contentionTries {
			return s.explain(err)
		}
		// Full jitter, so that those who collided do not meet again.
		if pause(ctx, rand.N(time.Millisecond<<min(try, 7))) != nil {
			return s.explain(err)
		}
	}
}

// discard throws away the connection that the pool would hand out next, which
// is the one that was given back last. A driver does that itself with those that
// broke, but not with one to a server that answers and does not serve, such as a
// node of a cluster without a majority. The one opened in its place may lead to
// another.
func (s *store) discard(ctx context.Context) {
	if s.db.Stats().Idle == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second) // others may be faster
	defer cancel()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return
	}
	giveBack(conn, false)
}

// write is retry for whatever writes. Where the engine has one writer at a time
// for the whole database, this process's writers queue up here: SQLite makes
// those who find it locked sleep, and hands it to whoever comes by.
func (s *store) write(ctx context.Context, fn func() error) error {
	if !s.server.Caps.SingleWriter {
		return s.retry(ctx, fn)
	}
	select {
	case s.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.writer }()
	return s.retry(ctx, fn)
}

// unhurried returns a context that ends a second after ctx does. A statement that
// is about to answer need not be cancelled, which costs its connection, and
// PgBouncer 1.18 now and then its life.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, cancel) })
	return later, func() {
		stop()
		cancel()
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
