package falldue

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

func TestBatchesHoldOneClaimPerTask(t *testing.T) {
	t.Parallel()
	var rest []*taskRun
	for _, id := range []int64{1, 2, 1, 3, 1, 1} {
		rest = append(rest, &taskRun{execution: execution{claim: &store.Claim{Claimed: statements.Claimed{ID: id, Fence: int64(len(rest))}}}})
	}
	last := map[int64]int64{}
	for _, want := range []int{3, 1, 1, 1} {
		batch, again := distinct(rest)
		if rest = again; len(batch) != want {
			t.Fatalf("a batch holds %d claims, want %d", len(batch), want)
		}
		for _, r := range batch {
			if r.claim.Fence < last[r.claim.ID] {
				t.Errorf("task %d: claim %d is settled after claim %d", r.claim.ID, r.claim.Fence, last[r.claim.ID])
			}
			last[r.claim.ID] = r.claim.Fence
		}
	}
	if len(rest) > 0 {
		t.Errorf("%d claims are left", len(rest))
	}
}

// claimed returns a worker without goroutines, and runs of n tasks that it has
// claimed and whose handlers have succeeded.
func claimed(t *testing.T, engine string, n int) (q *Queue, w *worker, runs []*taskRun) {
	t.Helper()
	q, err := New(testdb.Open(t, engine), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := NewKind[int]("settled", KindConfig{})
	if _, err := k.EnqueueMany(t.Context(), q, make([]int, n)); err != nil {
		t.Fatal(err)
	}
	w = newWorker(q.cfg, q.store, q.keeper, nil, nil)
	for len(runs) < n {
		got, err := q.store.Claim(t.Context(), store.ClaimParams{
			Queue: DefaultQueue, Worker: w.id, Lease: time.Minute, Limit: min(n-len(runs), store.MaxBatch),
			Sources: []store.Source{{Lane: store.Lane{State: statements.StateOpen, Kind: "settled"}, Delay: newRule(backoff.Zizq()).delay, Running: statements.StateOpen}},
		})
		if err != nil || len(got) == 0 {
			t.Fatalf("claimed %d tasks (error %v)", len(got), err)
		}
		for _, c := range got {
			r := &taskRun{runEnv: w.dispatchers[DefaultQueue].env, execution: execution{claim: c}, lease: lease{until: time.Now().Add(time.Minute)}}
			r.end = r.conclude(nil, 0)
			runs = append(runs, r)
		}
	}
	return q, w, runs
}

// wait waits for a signal.
func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// TestSecondSettlerHelps: the settler signals the second one when many runs wait beside
// its batch, and the second one settles them.
func TestSecondSettlerHelps(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q, w, runs := claimed(t, engine, store.MaxBatch+minBatch)
		if w.settler.second == nil {
			t.Skip("it has one writer at a time")
		}
		for _, r := range runs {
			w.settler.in <- r
		}
		var ended sync.WaitGroup
		ended.Go(func() { w.settler.writeLoop(t.Context(), w.settler.in, nil) })
		wait(t, w.settler.assistWanted, "the settler to signal the second one")
		close(w.settler.in)
		ended.Wait()
		if n, err := q.Counts(t.Context()); err != nil || len(n) > 0 {
			t.Errorf("left are %v (error %v)", n, err)
		}

		q, w, runs = claimed(t, engine, 3)
		for _, r := range runs {
			w.settler.second.in <- r
		}
		w.settler.in = make(chan *taskRun) // the first one gets none of them
		signal(w.settler.assistWanted)
		close(w.settler.in)
		w.settler.work(t.Context())
		if n, err := q.Counts(t.Context()); err != nil || len(n) > 0 {
			t.Errorf("the second settler left %v (error %v)", n, err)
		}
	})
}

// TestPollersWaitForSettlers: a poller claims nothing while a batch waits to be settled,
// and goes on after that.
func TestPollersWaitForSettlers(t *testing.T) {
	t.Parallel()
	_, w, runs := claimed(t, testdb.SQLite, store.MaxBatch)
	p := w.pollers[DefaultQueue]
	for _, r := range runs {
		if p.room() == 0 {
			t.Fatalf("the poller waits for %d settlements", len(w.settler.in))
		}
		w.settler.in <- r
	}
	if n := p.room(); n > 0 {
		t.Errorf("with %d settlements waiting the poller claims %d tasks", store.MaxBatch, n)
	}
	var ended sync.WaitGroup
	ended.Go(func() { w.settler.work(t.Context()) })
	wait(t, p.budget.freed, "the poller to be woken")
	if p.room() == 0 {
		t.Error("the poller was woken and still waits")
	}
	close(w.settler.in)
	ended.Wait()
}

// TestShutdownDoesNotWaitForDeadDatabase: Run returns soon after the shutdown timeout,
// even if leases last for a day.
func TestShutdownDoesNotWaitForDeadDatabase(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		db := sqlx.NewDb(sql.OpenDB(dead{}), "dead")
		defer db.Close()
		s := store.New(db, server, store.Options{})
		cfg := Config{Lease: 24 * time.Hour, ShutdownTimeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}.withDefaults()
		w := newWorker(cfg, s, newPolicyKeeper(s, events{cfg.Logger}), nil, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan time.Time, 1)
		go func() {
			w.run(ctx)
			ended <- time.Now()
		}()
		r := &taskRun{runEnv: w.dispatchers[DefaultQueue].env, execution: execution{claim: &store.Claim{}}, lease: lease{until: time.Now().Add(cfg.Lease)}}
		w.leases.hold(r)
		w.settler.in <- r
		time.Sleep(time.Hour)
		stop()
		stopped := time.Now()
		if took := (<-ended).Sub(stopped); took > statementTimeout+cfg.ShutdownTimeout+lastSettles {
			t.Errorf("Run ended %v after its context", took)
		}
		if n := w.leases.count(); n != 0 {
			t.Errorf("%d claims are still held", n)
		}
	})
}

// TestBadSettlementsDelayGoodOnesLittle: a steady stream of runs whose settlements are
// refused, and one whose settlement hangs, delay the others by seconds.
func TestBadSettlementsDelayGoodOnesLittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		bad   func(id int64) bool
		hangs bool
		most  time.Duration
	}{
		{"refused", func(id int64) bool { return id%2 == 0 }, false, 2 * time.Second},
		{"hangs", func(id int64) bool { return id == 0 }, true, 2*settleTimeout + slowSettleTimeout + time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const n = 4000
				s, runs := refusingSettler(n, dialect.UniqueViolation, nil, nil)
				settle := func(ctx context.Context, _ string, batch []*store.Settlement) (store.Unsettled, error) {
					time.Sleep(2 * time.Millisecond)
					if !slices.ContainsFunc(batch, func(e *store.Settlement) bool { return c.bad(e.TaskID) }) {
						return store.Unsettled{}, nil
					}
					if c.hangs {
						<-ctx.Done()
						return store.Unsettled{}, ctx.Err()
					}
					return store.Unsettled{}, errors.New("no")
				}
				s.settle, s.settleUnlocked, s.second = settle, settle, nil
				go s.work(t.Context())
				sent := map[*taskRun]time.Time{}
				var worst time.Duration
				for _, r := range runs {
					s.in <- r
					if !c.bad(r.claim.ID) {
						sent[r] = time.Now()
					}
					time.Sleep(20 * time.Millisecond)
					for r, at := range sent {
						if !s.leases.holds(r) {
							worst = max(worst, time.Since(at))
							delete(sent, r)
						}
					}
				}
				if worst > c.most || len(sent) > 1000 {
					t.Errorf("a settlement waited for %v, want %v at most; %d still wait", worst, c.most, len(sent))
				}
				close(s.in)
				<-s.done
			})
		})
	}
}
