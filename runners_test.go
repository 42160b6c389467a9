package falldue

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

func TestRunnersRunUpToTheirLimit(t *testing.T) {
	t.Parallel()
	const limit = 50
	started, end := make(chan struct{}), make(chan struct{})
	var running, most atomic.Int64
	r := runners{limit: limit, returned: func() {}, run: func(*taskRun) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		started <- struct{}{}
		<-end
		running.Add(-1)
	}}
	r.add(runsOf(2 * limit)...)
	for range limit {
		select {
		case <-started:
		case <-time.After(testdb.Patience):
			t.Fatalf("%d run side by side, want %d", running.Load(), limit)
		}
	}
	waiting := len(r.drain())
	close(end)
	go func() {
		for range started {
		}
	}()
	r.all.Wait()
	close(started)
	if most.Load() > limit || waiting != limit {
		t.Errorf("%d ran side by side and %d waited, want %d and %d", most.Load(), waiting, limit, limit)
	}
}

func runsOf(n int) []*taskRun {
	runs := make([]*taskRun, n)
	for i := range runs {
		runs[i] = &taskRun{execution: execution{claim: &store.Claim{}, rule: newRule(backoff.Constant(0))}}
	}
	return runs
}

func TestRunnersKeepTheOrder(t *testing.T) {
	t.Parallel()
	var ids []int64
	r := runners{limit: 1, returned: func() {}, run: func(r *taskRun) { ids = append(ids, r.claim.ID) }}
	runs := runsOf(100)
	for i, one := range runs {
		one.claim.ID = int64(i)
	}
	r.add(runs[:60]...)
	r.add(runs[60:]...)
	r.all.Wait()
	for i, id := range ids {
		if int64(i) != id {
			t.Fatalf("task %d ran in place %d", id, i)
		}
	}
	if len(ids) != len(runs) {
		t.Errorf("%d ran, want %d", len(ids), len(runs))
	}
}

func TestGoexitFailsTheAttempt(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	q, err := New(db, Config{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const exits = 3
	k := NewKind[int]("exits", KindConfig{Policy: backoff.Constant(0)})
	receipt, err := k.Enqueue(t.Context(), q, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
	defer stop()
	var failures []Attempt
	Handle(q, k, func(ctx context.Context, task Task[int]) (err error) {
		if task.Attempt <= exits {
			runtime.Goexit() // as a test's FailNow does
		}
		defer stop()
		failures, err = q.Attempts(ctx, receipt.ID)
		return err
	})
	if err := q.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(failures) != exits || !strings.Contains(failures[0].Error, "Goexit") {
		t.Errorf("attempts are recorded as %+v, want %d that failed", failures, exits)
	}
}
