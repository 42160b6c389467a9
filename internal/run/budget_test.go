package run

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestBudgetClaimsForFreeHandlersAndALittleAhead checks how many tasks a worker claims.
func TestBudgetClaimsForFreeHandlersAndALittleAhead(t *testing.T) {
	t.Parallel()
	b, ahead := NewBudget(10, MaxPrefetch), 0
	if n := b.Room(ahead); n != 10 {
		t.Errorf("an idle worker of 10 handlers claims %d tasks", n)
	}
	b.Claiming(10)
	if n := b.Room(ahead); n != 0 {
		t.Errorf("beside a claim of 10 it claims %d more", n)
	}
	b.Claimed(4, 10)
	if n := b.Room(ahead); n != 6 {
		t.Errorf("after a claim that took 4 of 10 it claims %d, want 6", n)
	}
	ahead = 2 * MaxPrefetch
	if n := b.Room(ahead); n != store.MaxBatch {
		t.Errorf("with handlers that return at once it claims %d, want %d", n, store.MaxBatch)
	}
	b.Claiming(6 + MaxPrefetch)
	if n := b.Room(ahead); n != 0 {
		t.Errorf("with %d waiting it claims %d more", MaxPrefetch, n)
	}
	for range 10 + MaxPrefetch - 6 {
		b.returned()
	}
	b.waitedInVain()
	if n := b.Room(ahead); n != 5 {
		t.Errorf("with 5 running, and after a task waited in vain, it claims %d, want 5", n)
	}
	b.returned()
	if n := b.Room(ahead); n != store.MaxBatch {
		t.Errorf("after the next handler has returned it claims %d, want %d", n, store.MaxBatch)
	}
	b = NewBudget(10, -1)
	ahead = MaxPrefetch
	if n := b.Room(ahead); n != 10 {
		t.Errorf("with a negative MaxPrefetch it claims %d, want 10", n)
	}
}

// TestPaceFollowsHandlerTimes: only as many tasks are claimed ahead as handlers finish in three times the time
// of a claim, within bounds. The durations of handlers count, and not how many handlers return at a moment.
func TestPaceFollowsHandlerTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p pace
		claim := time.Millisecond // 20 ms ahead
		check := func(after string, want int) {
			t.Helper()
			if n := p.Ahead(10, claim); n > want || n < want*9/10 {
				t.Errorf("%s: %d are claimed ahead, want about %d", after, n, want)
			}
		}
		check("before a handler has returned", 0)
		for range 10 {
			p.Record(time.Second)
		}
		check("after ten slow handlers that ended together", 0)
		for range 300 {
			p.Record(time.Millisecond)
		}
		check("after many handlers of 1 ms", 200)
		claim = 10 * time.Millisecond
		check("with claims of 10 ms", 300)
		claim = time.Second
		check("with claims of a second", 2500)
		claim = time.Millisecond
		p.Record(0)
		p.Record(time.Second)
		check("after a slow one among them", 3)
		for range 300 {
			p.Record(0)
		}
		if n := p.Ahead(10, claim); n < MaxPrefetch {
			t.Errorf("after many that return at once: %d are claimed ahead, want %d and more", n, MaxPrefetch)
		}
		p.pause()
		check("after last attempts were found", 0)
		time.Sleep(pacePause)
		if p.Ahead(10, claim) == 0 {
			t.Error("nothing is ever claimed ahead again")
		}
	})
}

// TestPollersTakeTurns: pollers that share a budget get its room in the order in which they came. One that does not use
// its turn, or leaves, passes it on.
func TestPollersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1, 0)
		b.Claiming(1)
		leaving, leave := context.WithCancel(t.Context())
		var mu sync.Mutex
		var turns []string
		poller := func(ctx context.Context, name string) {
			go func() {
				b.Await(ctx)
				mu.Lock()
				defer mu.Unlock()
				turns = append(turns, name)
			}()
			synctest.Wait()
		}
		wants := func(after string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(turns, want) {
				t.Errorf("%s: turns of %v, want %v", after, turns, want)
			}
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			ctx := t.Context()
			if name == "b" {
				ctx = leaving
			}
			poller(ctx, name)
		}
		b.PassOn()
		wants("no handler is free")
		b.returned()
		wants("a handler returned", "a")
		leave()
		wants("b left the line", "a", "b")
		b.PassOn()
		wants("a had no task", "a", "b", "c")
		b.Claiming(1)
		b.PassOn()
		wants("c claimed a task", "a", "b", "c")
		b.returned()
		b.returned()
		wants("d is the last one", "a", "b", "c", "d")
		poller(t.Context(), "e")
		wants("a handler had returned before e came", "a", "b", "c", "d", "e")
	})
}
