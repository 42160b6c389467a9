package run

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
)

// TestPausedTasksAreGivenBack: tasks that wait for a handler are released when they are paused.
func TestPausedTasksAreGivenBack(t *testing.T) {
	t.Parallel()
	runOf := func(kind string) *Run {
		return &Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{From: store.Lane{Kind: kind}}}, Env: &Env{Queue: "default"}}
	}
	settled := make(chan *Run, 10)
	d := NewDispatcher(DispatcherConfig{Observer: noObserver{}, Env: &Env{Queue: "default"}, Changes: readerOf(nil), Settle: settled, Budget: NewBudget(1, 10)})
	d.Runners.waiting = []*Run{runOf("a"), runOf("b"), runOf("a")}
	d.GivePausedBack()
	d.Changes = paused(t, "a")
	d.GivePausedBack()
	d.Runners.All.Wait()
	if len(settled) != 2 || len(d.Runners.waiting) != 1 || d.Runners.waiting[0].Claim.From.Kind != "b" {
		t.Errorf("%d tasks are given back, and %d wait", len(settled), len(d.Runners.waiting))
	}
}

// TestPauseWhileTheWorkerStops: the worker applies a pause while it stops. All tasks are released
// before the settler ends.
func TestPauseWhileTheWorkerStops(t *testing.T) {
	t.Parallel()
	for range 2000 {
		settled := make(chan *Run, 1)
		d := NewDispatcher(DispatcherConfig{Observer: noObserver{}, Env: &Env{Queue: "default"}, Changes: readerOf(nil), Settle: settled, Budget: NewBudget(1, 10)})
		d.Runners.waiting = []*Run{{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}}, Env: d.Env}}
		match, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			<-match
			d.Finish()
			close(stopped)
		}()
		d.Runners.remove(func(*Run) bool { close(match); return true }, func(list []*Run) {
			runtime.Gosched() // Finish would continue
			d.giveBack(list)
		})
		<-stopped
		if len(settled) != 1 {
			t.Fatal("the worker has stopped, and a task is not given back")
		}
	}
}

// TestTasksOfAClaimUnderWayDoNotStartInAPause: the answer of a claim comes while the worker applies a pause
// of the claim's tasks. None of their handlers begins, although other handlers return in the meantime.
func TestTasksOfAClaimUnderWayDoNotStartInAPause(t *testing.T) {
	var began atomic.Int64
	const rounds, limit = 10000, 10
	settled := make(chan *Run, 100)
	go func() {
		for range settled {
		}
	}()
	quiet := slog.New(slog.DiscardHandler)
	a, b := &Handler{Policy: control.Compile(backoff.Zizq())}, &Handler{Policy: control.Compile(backoff.Zizq())}
	a.Run = func(context.Context, *Run) *outcome.Failure { began.Add(1); return nil }
	b.Run = func(context.Context, *Run) *outcome.Failure { return nil }
	d := NewDispatcher(DispatcherConfig{
		Env: &Env{Queue: "default", Observer: noObserver{}}, Changes: paused(t, "a"), Settle: settled, Budget: NewBudget(limit, 0),
		Handlers: map[string]*Handler{"a": a, "b": b}, Leases: newLeases(), Length: time.Minute, Log: quiet, Observer: noObserver{},
		Stop: t.Context(), Work: t.Context(),
	})
	take := func(kind string, n int) {
		var claims []*store.Claim
		for i := range n {
			c := &store.Claim{Attempts: 1, From: store.Lane{State: "open", Kind: kind}}
			c.Place, c.ID, c.Fence = 1, int64(i+1), 1
			claims = append(claims, c)
		}
		d.Budget.Claiming(n)
		d.Take(claims, []*control.CompiledPolicy{d.Handlers[kind].Policy}, time.Now())
	}
	for range rounds {
		take("b", 3)
		take("a", 3)
	}
	d.Runners.All.Wait()
	close(settled)
	if n := began.Load(); n > 0 {
		t.Errorf("%d of %d handlers of paused tasks have begun", n, 3*rounds)
	}
}
