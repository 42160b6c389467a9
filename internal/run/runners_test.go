package run

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// handlerFunc is a taskHandler.
type handlerFunc func(*Run)

func (f handlerFunc) Handle(r *Run) { f(r) }

func TestRunnersRunUpToTheirLimit(t *testing.T) {
	t.Parallel()
	const limit = 50
	started, end := make(chan struct{}), make(chan struct{})
	var running, most atomic.Int64
	r := newRunners(NewBudget(limit, 0), handlerFunc(func(*Run) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		started <- struct{}{}
		<-end
		running.Add(-1)
	}))
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
	r.All.Wait()
	close(started)
	if most.Load() > limit || waiting != limit {
		t.Errorf("%d ran side by side and %d waited, want %d and %d", most.Load(), waiting, limit, limit)
	}
}

func runsOf(n int) []*Run {
	runs := make([]*Run, n)
	for i := range runs {
		runs[i] = &Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}, Policy: control.Compile(backoff.Constant(0))}}
	}
	return runs
}

func TestRunnersKeepTheOrder(t *testing.T) {
	t.Parallel()
	var ids []int64
	r := newRunners(NewBudget(1, 0), handlerFunc(func(r *Run) { ids = append(ids, r.Claim.ID) }))
	runs := runsOf(100)
	for i, one := range runs {
		one.Claim.ID = int64(i)
	}
	r.add(runs[:60]...)
	r.add(runs[60:]...)
	r.All.Wait()
	for i, id := range ids {
		if int64(i) != id {
			t.Fatalf("task %d ran in place %d", id, i)
		}
	}
	if len(ids) != len(runs) {
		t.Errorf("%d ran, want %d", len(ids), len(runs))
	}
}
