// Package pgnotify wakes workers on PostgreSQL as soon as another process commits
// tasks. Otherwise they find these tasks at their next poll. The package uses
// LISTEN and NOTIFY. It needs a connection of its own, which it opens with lib/pq;
// the queue itself may use another driver:
//
//	q, err := falldue.New(db, falldue.Config{Listen: pgnotify.DSN(dsn)})
//
// A process that enqueues tasks must notify:
//
//	q, err := falldue.New(db, falldue.Config{Notify: true})
//
// A worker that listens polls every 15 seconds, unless Config.PollInterval is set.
// It finds tasks of processes that do not notify only when it polls.
package pgnotify

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"
)

const (
	minReconnect = 100 * time.Millisecond
	maxReconnect = 10 * time.Second
	// pingInterval is how often the connection is tested, to detect one that was
	// lost without an error.
	pingInterval = 30 * time.Second
)

// DSN returns a function for [falldue.Config].Listen that listens on the database
// at dsn, in a form that lib/pq accepts. dsn must not lead to a connection pooler
// in transaction mode, which does not forward notifications.
//
// The function calls wake when it has begun to listen, at each notification, and
// after each reconnect, since notifications may have been lost. It reconnects
// after 100 milliseconds at first, and after 10 seconds at most. It returns nil
// when its context ends, and an error if it cannot listen or a ping fails.
func DSN(dsn string) func(ctx context.Context, channel string, wake func()) error {
	return func(ctx context.Context, channel string, wake func()) error {
		listener := pq.NewListener(dsn, minReconnect, maxReconnect, nil)
		defer func() { _ = listener.Close() }()
		listening := make(chan error, 1)
		go func() { listening <- listener.Listen(channel) }()
		select {
		case <-ctx.Done():
			return nil
		case err := <-listening:
			if err != nil {
				return fmt.Errorf("pgnotify: listen on %s: %w", channel, err)
			}
		}
		wake()
		ping := time.NewTicker(pingInterval)
		defer ping.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-listener.Notify: // also after a reconnect, when notifications may have been lost
				wake()
			case <-ping.C:
				if err := listener.Ping(); err != nil {
					return fmt.Errorf("pgnotify: %w", err)
				}
			}
		}
	}
}
