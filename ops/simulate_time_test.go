package ops_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/tasktest"
)

// TestSimulateIsLikeAWorker compares the simulation with a worker of two handlers that take
// time, under policies with jitter: once so busy that tasks wait for a handler, and once so that
// the jitter decides which of them die. All is in a bubble whose time jumps ahead when everybody
// waits, and which the database's clock follows.
func TestSimulateIsLikeAWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy   string
		scenario ops.Scenario
	}{
		"busy":   {"delay 10s * n; jitter 20s; attempts 4", ops.Scenario{Outage: 4 * time.Minute, PerSecond: 1, Handler: 800 * time.Millisecond, Workers: 2}},
		"jitter": {"delay 5s; jitter 1m; attempts 4", ops.Scenario{Outage: 4 * time.Minute, PerSecond: 1, Handler: 300 * time.Millisecond, Failure: 100 * time.Millisecond, Workers: 2}},
	} {
		want, err := ops.Simulate(t.Context(), parse(t, c.policy), c.scenario)
		if err != nil {
			t.Fatal(err)
		}
		if want.Dead < 50 || want.Failed < 200 || want.Recovered < 30*time.Second {
			t.Errorf("%s: the simulation is too harmless: %+v", name, want)
		}
		synctest.Test(t, func(t *testing.T) {
			got := work(t, parse(t, c.policy), c.scenario, want.Recovered)
			same := about(int64(got.Failed), int64(want.Failed), 10) && about(int64(got.Retries), int64(want.Retries), 40) && about(int64(got.Dead), int64(want.Dead), 25)
			if !same || (got.Recovered-want.Recovered).Abs() > 20*time.Second {
				want.Load = nil
				t.Errorf("%s\nfalldue: %+v\nthe simulation: %+v", name, got, want)
			}
		})
	}
}

// work runs a worker through an outage, and so long after it.
func work(t *testing.T, policy backoff.Policy, s ops.Scenario, after time.Duration) (r ops.Recovery) {
	db := testdb.Open(t, testdb.SQLite)
	clock := tasktest.NewClock(t, db)
	q, err := falldue.New(db, falldue.Config{Concurrency: s.Workers, Logger: slog.New(slog.DiscardHandler), DoneRetention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	start, began := time.Now(), clock.Now(t)
	kind := falldue.NewKind[struct{}]("mail", falldue.KindConfig{Policy: policy})
	var mu sync.Mutex
	failed, enqueued := map[int64]bool{}, map[int64]time.Duration{}
	falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[struct{}]) error {
		began := time.Since(start)
		failing := began < s.Outage
		if failing && s.Failure > 0 {
			time.Sleep(s.Failure) // in the bubble
		} else {
			time.Sleep(s.Handler)
		}
		mu.Lock()
		defer mu.Unlock()
		if task.Attempt > 1 {
			r.Retries++
		}
		if failing {
			failed[task.ID] = true
			return errors.New("down")
		}
		if waited := began-enqueued[task.ID] > 300*time.Millisecond; failed[task.ID] || waited {
			r.Recovered = time.Since(start) - s.Outage
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := q.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() { // the database's clock follows the bubble's
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			clock.Jump(t, max(0, time.Since(start)-clock.Now(t).Sub(began)))
		}
	})
	every := time.Duration(float64(time.Second) / s.PerSecond)
	for time.Since(start) < s.Outage+2*after {
		mu.Lock()
		receipt, err := kind.Enqueue(t.Context(), q, struct{}{})
		enqueued[receipt.ID] = time.Since(start)
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(every)
	}
	stop()
	all.Wait()
	r.Failed = len(failed)
	counts, err := ops.New(q).Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		if c.State == falldue.StateDead {
			r.Dead = int(c.Tasks)
		}
	}
	return r
}
