// Package pgnotify wakes workers on PostgreSQL as soon as another process
// commits tasks, instead of at their next poll. It needs a connection of its
// own, which it opens with lib/pq, whatever driver the queue itself uses:
//
//	q, err := falldue.New(db, falldue.Config{Listen: pgnotify.DSN(dsn)})
//
// A process that only enqueues has to notify:
//
//	q, err := falldue.New(db, falldue.Config{Notify: true})
//
// A worker that listens polls every 15 seconds, unless Config.PollInterval says
// otherwise; tasks of a process that does not notify wait for that.
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
	// pingEvery finds connections that died without a word.
	pingEvery = 30 * time.Second
)

// DSN returns what Config.Listen takes, for the database at dsn. It must be
// reached directly: a pooler in transaction mode passes no notices on.
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
		ping := time.NewTicker(pingEvery)
		defer ping.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-listener.Notify: // nil after a reconnect, when notices may be lost
				wake()
			case <-ping.C:
				if err := listener.Ping(); err != nil {
					return fmt.Errorf("pgnotify: %w", err)
				}
			}
		}
	}
}
