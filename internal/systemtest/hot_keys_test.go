package systemtest

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestManyWorkersDoNotHammerHotKeys: tasks of three keys wait while two of each run, which is all that
// the limit allows. Each of four workers with a pool of its own then claims a few times a second.
func TestManyWorkersDoNotHammerHotKeys(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const workers, keys, perKey, each = 4, 3, 2, 20
		const most = 15 // claims of a worker in a second
		dsn := testdb.DSN(t, engine)
		kind := falldue.NewKind[string]("hot", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(perKey).PerKey()}})
		bell := falldue.NewKind[string]("bell", falldue.KindConfig{Queue: "bells"})
		var claims, empty, done atomic.Int64
		started, rang, release := make(chan string, keys*each), make(chan time.Time, 1), make(chan struct{})
		hooks := falldue.Hooks{Claim: func(c falldue.StatementStats) {
			if c.Queue != "default" {
				return
			}
			if claims.Add(1); c.Tasks == 0 {
				empty.Add(1)
			}
		}}
		var queues []*falldue.Queue
		for range workers {
			db, err := testdb.OpenFew(testdb.Drivers(engine)[0], dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			q := hotQueue(t, db, hooks)
			falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
				started <- task.Args
				<-release
				done.Add(1)
				return nil
			})
			falldue.Handle(q, bell, func(context.Context, falldue.Task[string]) error {
				rang <- time.Now()
				return nil
			})
			queues = append(queues, q)
		}
		for i := range keys {
			key := strconv.Itoa(i)
			if _, err := kind.EnqueueMany(t.Context(), queues[0], slices.Repeat([]string{key}, each), falldue.EnqueueOptions{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		var stops []func()
		for _, q := range queues {
			stops = append(stops, runUntil(t, q))
		}
		for range keys * perKey { // all that the limit allows
			<-started
		}
		// ring returns the time when a task starts that falls due after delay.
		ring := func(delay time.Duration) time.Time {
			if _, err := bell.Enqueue(t.Context(), queues[0], "", falldue.EnqueueOptions{Delay: delay}); err != nil {
				t.Fatal(err)
			}
			return <-rang
		}
		begin := ring(2 * time.Second) // until then each worker has claimed in vain some times
		claims.Store(0)
		empty.Store(0)
		took := ring(3 * time.Second).Sub(begin)
		n, inVain := claims.Load(), empty.Load()
		if limit := int64(workers * most * took.Seconds()); n > limit {
			t.Errorf("%d workers claimed %d times in %v while the keys had all permits, want %d at most", workers, n, took, limit)
		}
		if n != inVain || n == 0 {
			t.Errorf("%d claims, of which %d in vain; want some, all of them in vain", n, inVain)
		}
		t.Logf("%s: %d claims of %d workers in %v", engine, n, workers, took)
		close(release)
		waitFor(t, "all tasks to be done", func() bool { return done.Load() == keys*each })
		for _, stop := range stops {
			stop()
		}
	})
}

// hotQueue returns a queue with the tables, which also works on a queue named bells.
func hotQueue(t *testing.T, db *sqlx.DB, hooks falldue.Hooks) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, falldue.Config{
		Queues: map[string]falldue.QueueConfig{"default": {}, "bells": {}}, Hooks: hooks,
		Lease: 2 * time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}
