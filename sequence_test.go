package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestTasksOfAKeyRunInOrder: tasks of several keys fail, are snoozed, and lose their worker.
// The effects of each key are in the order in which its tasks were enqueued, and its
// tasks never run at once.
func TestTasksOfAKeyRunInOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const workers, keys, each = 3, 5, 20
		type step struct {
			Key string
			N   int
		}
		kind := falldue.NewKind[step]("k", falldue.KindConfig{Policy: backoff.Constant(time.Millisecond), Limits: []falldue.Limit{falldue.InOrder(), falldue.AtMost(4)}})
		var mu sync.Mutex
		effects, gauges := map[string][]int{}, map[string]*gauge{}
		for i := range keys {
			gauges[fmt.Sprintf("customer:%d", i)] = &gauge{}
		}
		total := 0
		hanging, cut := make(chan struct{}, keys*each), make(chan struct{})
		queues, pools := make([]*falldue.Queue, workers), make([]*sqlx.DB, workers)
		dsn := testdb.DSN(t, engine)
		for i := range queues {
			var err error
			if pools[i], err = sqlx.Open(testdb.Drivers(engine)[0], dsn); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pools[i].Close() })
			lease := 30 * time.Second // a busy machine must not lose it
			if i == 0 {
				lease = 3 * time.Second
			}
			q, err := falldue.New(pools[i], falldue.Config{Lease: lease, PollInterval: 50 * time.Millisecond, ShutdownTimeout: -1, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[step]) error {
				if i == 0 {
					hanging <- struct{}{}
					<-cut // its process dies
					return errors.New("nobody hears of this")
				}
				g := gauges[task.Args.Key]
				g.enter()
				defer g.leave()
				switch {
				case task.Attempt == 1 && task.Args.N%5 == 3:
					return errors.New("again")
				case task.Fence == 1 && task.Args.N%5 == 4:
					return falldue.Snooze(time.Millisecond)
				}
				mu.Lock()
				defer mu.Unlock()
				effects[task.Args.Key] = append(effects[task.Args.Key], task.Args.N)
				total++
				return nil
			})
			queues[i] = q
		}
		for n := 0; n < each; n += 4 { // alone and many at once
			for key := range gauges {
				opts := &falldue.EnqueueOptions{Key: key}
				if _, err := kind.Enqueue(t.Context(), queues[1], step{key, n}, opts); err != nil {
					t.Fatal(err)
				}
				if _, err := kind.EnqueueMany(t.Context(), queues[1], []step{{key, n + 1}, {key, n + 2}, {key, n + 3}}, opts); err != nil {
					t.Fatal(err)
				}
			}
		}
		stops := []func(){runUntil(t, queues[0])}
		<-hanging
		stops = append(stops, runUntil(t, queues[1]), runUntil(t, queues[2]))
		_ = pools[0].Close() // from now on it can neither extend nor settle
		close(cut)
		waitFor(t, "all tasks", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return total >= keys*each
		})
		for _, stop := range stops {
			stop()
		}
		for key, g := range gauges {
			if got := effects[key]; len(got) != each || !slices.IsSorted(got) {
				t.Errorf("%s: %v", key, got)
			}
			if got := g.most.Load(); got != 1 {
				t.Errorf("%d tasks of %s ran at once", got, key)
			}
		}
	})
}

// TestDeathInASequence: the next task runs after one that is dead, or with HaltOnDeath not
// before that one is done.
func TestDeathInASequence(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		q, err := falldue.New(testdb.Open(t, engine), falldue.Config{PollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		ran := make(chan string, 10)
		ids := map[string]int64{}
		for name, order := range map[string]falldue.Limit{"on": falldue.InOrder(), "halt": falldue.InOrder().HaltOnDeath()} {
			kind := falldue.NewKind[string](name, falldue.KindConfig{Limits: []falldue.Limit{order}})
			failed := false
			falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
				if task.Args == "first" && !failed {
					failed = true
					return falldue.Discard(errors.New("hopeless"))
				}
				ran <- task.Kind + " " + task.Args
				return nil
			})
			list, err := kind.EnqueueMany(t.Context(), q, []string{"first", "second"}, &falldue.EnqueueOptions{Key: "key"})
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = list[0]
		}
		stop := runUntil(t, q)
		defer stop()
		if got := <-ran; got != "on second" {
			t.Errorf("%s ran", got)
		}
		waitFor(t, "a death", func() bool { return info(t, q, ids["halt"]).State == falldue.Dead })
		if err := q.Retry(t.Context(), ids["halt"]); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"halt first", "halt second"} {
			if got := <-ran; got != want {
				t.Errorf("%s ran, want %s", got, want)
			}
		}
	})
}
