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
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/testdb"
)

// gauge counts what runs at once.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) enter() {
	for now := g.now.Add(1); ; {
		if most := g.most.Load(); now <= most || g.most.CompareAndSwap(most, now) {
			return
		}
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// TestLimitsHoldAcrossWorkers: workers with pools of their own share a limit for each key
// and one for the kind. One worker is cut off from the database while its handlers run.
// Never do more handlers run than the limits allow, and when its leases have ended the
// other workers run its tasks, too.
func TestLimitsHoldAcrossWorkers(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const workers, keys, each, perKey, most = 3, 4, 30, 2, 5
		dsn, pools := testdb.DSN(t, engine), make([]*sqlx.DB, workers)
		kind := falldue.NewKind[string]("k", falldue.KindConfig{
			Policy: backoff.Constant(0),
			Limits: []falldue.Limit{falldue.AtMost(perKey).PerKey(), falldue.AtMost(most)},
		})
		var all gauge
		byKey := map[string]*gauge{}
		for i := range keys {
			byKey[fmt.Sprintf("customer:%d", i)] = &gauge{}
		}
		probe := falldue.NewKind[int]("probe", falldue.KindConfig{})
		var done atomic.Int64
		hanging, cut, probed := make(chan struct{}, workers*keys*each), make(chan struct{}), make(chan int, 100)
		queues := make([]*falldue.Queue, workers)
		for i := range pools {
			var err error
			if pools[i], err = testdb.OpenFew(testdb.Drivers(engine)[0], dsn); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pools[i].Close() })
			const lease = 2 * time.Minute // a busy machine must not lose it
			q, err := falldue.New(pools[i], falldue.Config{Name: fmt.Sprint("worker", i), Lease: lease, PollInterval: 50 * time.Millisecond, ShutdownTimeout: -1, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[string]) error {
				all.enter()
				defer all.leave()
				byKey[task.Args].enter()
				defer byKey[task.Args].leave()
				if i == 0 { // the worker that is cut off
					hanging <- struct{}{}
					<-cut // its process dies
					return errors.New("the lease was lost before this error")
				}
				for range 3 { // which takes some time
					if err := pools[i].PingContext(ctx); err != nil {
						return err
					}
				}
				done.Add(1)
				return nil
			})
			if i > 0 {
				falldue.Handle(q, probe, func(context.Context, falldue.Task[int]) error {
					select {
					case probed <- i:
					default: // the test has seen enough
					}
					return nil
				})
			}
			queues[i] = q
		}
		for key := range byKey {
			for range each {
				if _, err := kind.Enqueue(t.Context(), queues[1], key, falldue.EnqueueOptions{Key: key}); err != nil {
					t.Fatal(err)
				}
			}
		}
		stop := runUntil(t, queues[0])
		for range most { // all that the kind's limit allows
			<-hanging
		}
		others := []func(){runUntil(t, queues[1]), runUntil(t, queues[2])}
		for seen := map[int]bool{}; len(seen) < 2; seen[<-probed] = true { // until both look for tasks
			if _, err := probe.EnqueueMany(t.Context(), queues[0], make([]int, 20)); err != nil {
				t.Fatal(err)
			}
		}
		if n := done.Load(); n > 0 {
			t.Errorf("%d tasks were done while others had all permits", n)
		}
		_ = pools[0].Close() // from now on it can neither extend nor settle
		close(cut)
		waitFor(t, "the handlers of the worker that was cut off to return", func() bool { return all.now.Load() == 0 })
		server := hooks.StoreOf(queues[1]).Server()
		pools[1].MustExec("update falldue_tasks set updated_at = " + server.Clock().Shift(server.Clock().Now, "1000000") + " where claimed_by like 'worker0/%'") // their leases end in a second
		waitFor(t, "all tasks to be done", func() bool { return done.Load() >= keys*each })
		for _, stop := range append(others, stop) {
			stop()
		}
		if got := all.most.Load(); got != most {
			t.Errorf("%d tasks of the kind ran at once; the limit is %d", got, most)
		}
		for key, g := range byKey {
			if got := g.most.Load(); got > perKey {
				t.Errorf("%d tasks of %s ran at once; the limit is %d", got, key, perKey)
			}
		}
	})
}
