package pgxqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue/internal/pgxdb"
)

// connectTimeout is the longest time in which to connect and begin to listen.
const connectTimeout = 30 * time.Second

// pings says how the connection is tested, to detect one that was lost without an
// error: how long after the last notification, and how long an answer may take, the
// first notification too.
type pings struct{ after, timeout time.Duration }

var defaultPings = pings{after: 30 * time.Second, timeout: 10 * time.Second}

// minRenewal is the shortest time for which a connection listens.
const minRenewal = time.Minute

// listener listens by a connection that it opens as a pool does. It does not take one
// from the pool, since handlers may hold all of those. It exchanges the connection for
// another one as often as the pool does, which may lead to the successor of a server that
// still answers.
type listener struct {
	config *pgxpool.Config
	pings  pings
	renew  time.Duration // how long a connection listens
}

// newListener returns a listener for a pool.
func newListener(config *pgxpool.Config) listener {
	return listener{config, defaultPings, max(config.MaxConnLifetime, minRenewal)}
}

// ownListener listens for a queue without Notifications.Listen. New sets the rest
// once it knows the server.
type ownListener struct {
	listener
	pooled bool // the pool leads to a pooler that forwards no notifications
	log    *slog.Logger
}

// listen implements Notifications.Listen. Behind a pooler it says once that it does not listen,
// and waits for the end of the worker.
func (l *ownListener) listen(ctx context.Context, channel string, wake func(notice string)) error {
	if !l.pooled {
		return l.listener.listen(ctx, channel, wake)
	}
	l.log.Warn("falldue: the worker does not listen behind a pooler in transaction mode, and polls for tasks of other processes; to be notified, set Notifications.Listen to pgnotify.DSN with a DSN that bypasses the pooler")
	<-ctx.Done()
	return nil
}

// listen implements Notifications.Listen.
func (l listener) listen(ctx context.Context, channel string, wake func(notice string)) error {
	for ctx.Err() == nil {
		if err := l.serve(ctx, channel, wake); err != nil && ctx.Err() == nil {
			return fmt.Errorf("pgxqueue: listen on %s: %w", channel, err)
		}
	}
	return nil
}

// serve listens by one connection, and returns nil when that is old.
func (l listener) serve(ctx context.Context, channel string, wake func(notice string)) error {
	conn, err := l.begin(ctx, channel)
	if err != nil {
		return err
	}
	defer pgxdb.HangUp(conn)
	wake("")
	for begun := time.Now(); time.Since(begun) < l.renew; {
		n, err := l.next(ctx, conn, l.pings.after)
		switch {
		case errors.Is(err, errNothing):
			err = ask(ctx, conn, l.pings.timeout)
		case err == nil && n.Channel == channel:
			wake(n.Payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errUnheard is the error of a connection that listens and receives nothing.
var errUnheard = errors.New("the connection listens but receives no notifications, probably because of a pooler in transaction mode, such as PgBouncer with pool_mode=transaction; set Notifications.Listen to pgnotify.DSN with a DSN that bypasses the pooler")

// begin opens a connection that listens on a channel. A pooler in transaction mode
// accepts LISTEN and forwards nothing, so begin also waits for a notification that
// another connection sends.
func (l listener) begin(ctx context.Context, channel string) (_ *pgx.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			pgxdb.HangUp(conn)
		}
	}()
	proof := "falldue_proof_" + rand.Text()
	for _, name := range []string{channel, proof} {
		if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{name}.Sanitize()); err != nil {
			return nil, err
		}
	}
	other, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer pgxdb.HangUp(other)
	if _, err := other.Exec(ctx, "notify "+pgx.Identifier{proof}.Sanitize()); err != nil {
		return nil, err
	}
	for {
		n, err := l.next(ctx, conn, l.pings.timeout)
		switch {
		case errors.Is(err, errNothing):
			return nil, errUnheard
		case err != nil:
			return nil, err
		case n.Channel == proof:
			return conn, nil
		}
	}
}

// connect opens a connection with the settings of the pool.
func (l listener) connect(ctx context.Context) (*pgx.Conn, error) {
	config := l.config.ConnConfig.Copy()
	if before := l.config.BeforeConnect; before != nil { // it may set a new password
		if err := before(ctx, config); err != nil {
			return nil, err
		}
	}
	config.OnNotification = nil // the application's; without it pgx keeps notifications
	return pgx.ConnectConfig(ctx, config)
}

// errNothing is returned by next when nothing has come.
var errNothing = errors.New("no notification")

// next returns the next notification that comes within a time.
func (listener) next(ctx context.Context, conn *pgx.Conn, wait time.Duration) (*pgconn.Notification, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil, errNothing
	}
	return n, err
}

// ask returns an error if the server does not answer within a time.
func ask(ctx context.Context, conn *pgx.Conn, timeout time.Duration) error {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := conn.Ping(asking)
	if err != nil && asking.Err() != nil {
		return fmt.Errorf("no answer to a ping within %v", timeout)
	}
	return err
}
