// Package pgnotify wakes workers on PostgreSQL as soon as another process commits tasks. Without it, workers find these
// tasks by polling: within a third of a second with the default settings, or within two seconds after eleven minutes
// without a task. The package uses LISTEN and NOTIFY. It opens a separate connection through lib/pq, and the queue
// itself can use another driver:
//
//	q, err := falldue.New(db, falldue.Config{Notifications: falldue.Notifications{Listen: pgnotify.DSN(dsn)}})
//
// Calls such as Enqueue and EnqueueMany notify the listening workers, without a setting. EnqueueTx and EnqueueManyTx
// notify the workers at the commit only if Listen is also set in the process that enqueues. If Listen is not set there,
// call [falldue.Queue.Wake] after the commit, or set Mode:
//
//	q, err := falldue.New(db, falldue.Config{Notifications: falldue.Notifications{Mode: falldue.NotifyInTx}})
//
// A worker that listens also polls, to find tasks without a notification: three times a second, and every 1.75 seconds
// after eleven minutes without a task.
//
// The queue's own connections can use a pooler in transaction mode. The listening connection cannot use such a pooler:
// it needs a DSN of the server itself:
//
//	q, err := falldue.New(pooled, falldue.Config{Notifications: falldue.Notifications{Listen: pgnotify.DSN(directDSN)}})
//
// [falldue.Queue.Wake]: https://pkg.go.dev/github.com/falldue/falldue#Queue.Wake
package pgnotify

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lib/pq"

	"github.com/falldue/falldue/internal/dsn"
)

const (
	// connectTimeout is the longest time in which to connect and begin to listen.
	connectTimeout = 30 * time.Second
	// afterFailure is how long lib/pq waits until it connects again. By then the
	// listener is closed.
	afterFailure = 100 * time.Millisecond
)

// pings says how the connection is tested, to detect one that was lost without an
// error: how often, and how long an answer may take, the first notification too. Another
// connection takes its place after a time, which may lead to the successor of a server
// that still answers.
type pings struct{ every, timeout, renew time.Duration }

var defaultPings = pings{every: 30 * time.Second, timeout: 10 * time.Second, renew: 5 * time.Minute}

// DSN returns a function for [falldue.Notifications].Listen that listens on the database at source, in a form that
// lib/pq accepts: postgres://… or key=value …. Settings that only pgx knows, such as pool_max_conns and
// default_query_exec_mode, are ignored. source must not lead to a connection pooler in transaction mode, which forwards
// no notifications. To detect such a pooler, the function first sends itself a notification over a second connection.
//
// The function calls wake with "" when it has begun to listen, and with the text of each notification. Every five
// minutes the function replaces its connection, since source may lead to another server by then. It returns nil when
// its context ends. It returns an error if it cannot connect within 30 seconds, does not receive its own notification
// within 10 seconds, loses its connection, or gets no answer to a ping. The worker logs the error and calls the
// function again. The error names a setting that lib/pq or the server refuses, and shows no passwords.
//
// [falldue.Notifications]: https://pkg.go.dev/github.com/falldue/falldue#Notifications
func DSN(source string) func(ctx context.Context, channel string, wake func(notification string)) error {
	return func(ctx context.Context, channel string, wake func(notification string)) error {
		return serve(ctx, source, channel, wake, defaultPings)
	}
}

// serve listens by one connection after the other until ctx ends.
func serve(ctx context.Context, source, channel string, wake func(string), p pings) error {
	for ctx.Err() == nil {
		if err := listen(ctx, source, channel, wake, p); err != nil && ctx.Err() == nil {
			return fmt.Errorf("pgnotify: listen on %s: %w", channel, dsn.Redact(source, err))
		}
	}
	return nil
}

// listen listens by one connection, and returns nil when that is old or ctx ends.
func listen(ctx context.Context, source, channel string, wake func(string), p pings) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp() // so that nothing below waits for a server that does not answer
	failed := make(chan error, 1)
	source, err := withoutPgx(source)
	if err != nil {
		return err
	}
	listener := pq.NewDialListener(dialer{ctx}, source, afterFailure, afterFailure, func(_ pq.ListenerEventType, err error) {
		if err != nil {
			select {
			case failed <- err:
			default: // the first is the cause
			}
		}
	})
	defer func() { hangUp(); _ = listener.Close() }()
	// A pooler in transaction mode accepts LISTEN, and forwards nothing.
	proof := "falldue_proof_" + rand.Text()
	begun := make(chan error, 1)
	go func() { begun <- begin(ctx, listener, source, channel, proof) }()
	tooLong := time.NewTimer(connectTimeout)
	defer tooLong.Stop()
	for wait := fmt.Errorf("no connection within %v", connectTimeout); wait != nil; {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tooLong.C:
			return wait
		case err := <-begun:
			if err != nil {
				return err
			}
			tooLong.Reset(p.timeout)
			wait = errUnheard
		case n := <-listener.Notify:
			if n != nil && n.Channel == proof {
				wait = nil
			}
		}
	}
	wake("")
	ping := time.NewTicker(p.every)
	defer ping.Stop()
	old := time.NewTimer(p.renew)
	defer old.Stop()
	answered := make(chan error, 1)
	var late <-chan time.Time // runs while an answer is due
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-old.C:
			return nil
		case err := <-failed:
			return err
		case n := <-listener.Notify:
			if n == nil { // a new connection of lib/pq's: notifications may have been lost
				return errors.New("the connection was lost")
			}
			if n.Channel == channel {
				wake(n.Extra)
			}
		case <-ping.C:
			if late == nil {
				late = time.After(p.timeout)
				go func() { answered <- listener.Ping() }()
			}
		case err := <-answered:
			if late = nil; err != nil {
				return err
			}
		case <-late:
			return fmt.Errorf("no answer to a ping within %v", p.timeout)
		}
	}
}

// errUnheard is the error of a connection that listens and receives nothing.
var errUnheard = errors.New("the connection listens but receives no notifications, probably because of a pooler in transaction mode, such as PgBouncer with pool_mode=transaction; listen through a DSN that bypasses the pooler")

// begin listens on a channel and on proof, and sends a notification to proof by a
// connection of its own.
func begin(ctx context.Context, listener *pq.Listener, source, channel, proof string) error {
	for _, name := range []string{channel, proof} {
		if err := listener.Listen(name); err != nil {
			return err
		}
	}
	connector, err := pq.NewConnector(source)
	if err != nil {
		return err
	}
	connector.Dialer(dialer{ctx})
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, "notify "+pq.QuoteIdentifier(proof))
	return errors.Join(err, db.Close())
}

// dialer makes connections that close when ctx ends. lib/pq's listener takes no
// context, and would wait for a server that is silent.
type dialer struct{ ctx context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, connectTimeout)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	plain := net.Dialer{Timeout: timeout}
	c, err := plain.DialContext(d.ctx, network, address)
	if err == nil {
		context.AfterFunc(d.ctx, func() { _ = c.Close() })
	}
	return c, err
}
