package falldue

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/store"
)

// TestTasksOfAClaimUnderWayDoNotStartInAPause: the answer of a claim comes when the worker obeys a pause
// of its tasks. No handler of them begins, though other handlers return meanwhile.
func TestTasksOfAClaimUnderWayDoNotStartInAPause(t *testing.T) {
	var began atomic.Int64
	const rounds, limit = 10000, 10
	settled := make(chan *taskRun, 100)
	go func() {
		for range settled {
		}
	}()
	quiet := slog.New(slog.DiscardHandler)
	a, b := &handler{rule: newRule(backoff.Zizq())}, &handler{rule: newRule(backoff.Zizq())}
	a.run = func(context.Context, *taskRun) *failure { began.Add(1); return nil }
	b.run = func(context.Context, *taskRun) *failure { return nil }
	d := &dispatcher{
		env: &runEnv{queue: "default", begins: func(*taskRun) {}}, changes: newChangeReader(nil, events{quiet}), settle: settled, budget: newBudget(limit, 0),
		handlers: map[string]*handler{"a": a, "b": b}, leases: &leases{held: map[*taskRun]struct{}{}}, length: time.Minute, events: events{quiet}, observer: &observer{log: quiet},
	}
	d.start(t.Context(), t.Context())
	d.changes.pauses.Store(&[]heldBack{{Subject: control.Subject{Kind: "a"}}})
	take := func(kind string, n int) {
		var claims []*store.Claim
		for i := range n {
			c := &store.Claim{Attempts: 1, From: store.Lane{State: "open", Kind: kind}}
			c.Place, c.ID, c.Fence = 1, int64(i+1), 1
			claims = append(claims, c)
		}
		d.budget.claiming(n)
		d.take(claims, []*rule{d.handlers[kind].rule}, time.Now())
	}
	for range rounds {
		take("b", 3)
		take("a", 3)
	}
	d.runners.all.Wait()
	close(settled)
	if n := began.Load(); n > 0 {
		t.Errorf("%d of %d handlers of paused tasks have begun", n, 3*rounds)
	}
}
