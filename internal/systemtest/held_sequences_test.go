package systemtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestHeldSequencesCostNothing: the first tasks of many keys have failed and wait for an hour, and one
// more task of each is due. A worker finds that out with some claims, and makes no more of them. A task
// of another key starts with the next claims, and the one behind a task that is cancelled starts, too.
func TestHeldSequencesCostNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const keys, most = 1000, 5
		var claims, failures atomic.Int64
		swept, started, allFailed := make(chan struct{}), make(chan string, 2*keys), make(chan struct{})
		q := migratedQueue(t, testdb.Open(t, engine), falldue.Config{
			Lease: time.Minute, PollInterval: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			Hooks: falldue.Hooks{
				Claim: func(falldue.StatementStats) { claims.Add(1) },
				Sweep: func(falldue.StatementStats) {
					select {
					case swept <- struct{}{}:
					default:
					}
				},
			},
		})
		kind := falldue.NewKind[string]("event", falldue.KindConfig{
			Policy: backoff.Constant(time.Hour), Limits: []falldue.Limit{falldue.InOrder()},
		}).KeyedBy(func(key string) string { return key })
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
			switch n := failures.Add(1); {
			case n < keys:
			case n == keys:
				close(allFailed)
			default:
				started <- task.Args
				return nil
			}
			return errors.New("the receiver is down")
		})
		list := make([]string, keys)
		for i := range list {
			list[i] = fmt.Sprint("customer:", i)
		}
		first, err := kind.EnqueueMany(t.Context(), q, list)
		if err != nil {
			t.Fatal(err)
		}
		defer runUntil(t, q)()
		<-allFailed
		if _, err := kind.EnqueueMany(t.Context(), q, list); err != nil {
			t.Fatal(err)
		}
		// inSweeps returns how many claims there are during some sweeps.
		inSweeps := func() int64 {
			<-swept
			before := claims.Load()
			for range 3 {
				<-swept
			}
			return claims.Load() - before
		}
		for turn := 0; inSweeps() > most; turn++ {
			if turn == 50 {
				t.Fatal("the worker does not stop to claim in vain")
			}
		}
		for _, key := range []string{"new", ""} {
			before := claims.Load()
			if _, err := kind.Enqueue(t.Context(), q, key); err != nil {
				t.Fatal(err)
			}
			if got := <-started; got != key || claims.Load() > before+most {
				t.Errorf("a task of key %q started after %d claims, and the task had the key %q", key, claims.Load()-before, got)
			}
		}
		if err := q.Cancel(t.Context(), first[7].ID); err != nil {
			t.Fatal(err)
		}
		if got := <-started; got != list[7] {
			t.Errorf("the first task of %s was cancelled, and one of %s has started", list[7], got)
		}
	})
}

// migratedQueue returns a queue with its tables.
func migratedQueue(t *testing.T, db *sqlx.DB, cfg falldue.Config) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}
