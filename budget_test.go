package falldue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestBudgetClaimsForFreeHandlersAndALittleAhead checks how many tasks a worker claims.
func TestBudgetClaimsForFreeHandlersAndALittleAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		if n := b.room(); n != 10 {
			t.Errorf("an idle worker of 10 handlers claims %d tasks", n)
		}
		b.claiming(10)
		if n := b.room(); n != 0 {
			t.Errorf("beside a claim of 10 it claims %d more", n)
		}
		b.claimed(4, 10)
		if n := b.room(); n != 6 {
			t.Errorf("after a claim that took 4 of 10 it claims %d, want 6", n)
		}
		for range 4 {
			b.returned()
		}
		// 1,000 handlers return in each of ten windows of 10 ms, which is 100,000 per
		// second, and 2,000 in prefetchTime: more than maxPrefetch and than a claim takes.
		for range 10 {
			time.Sleep(10 * time.Millisecond)
			b.finished.Add(1000)
			b.room()
		}
		if n := b.room(); n != store.MaxBatch {
			t.Errorf("with handlers that return at once it claims %d, want %d", n, store.MaxBatch)
		}
		b.claiming(10 + maxPrefetch)
		if n := b.room(); n != 0 {
			t.Errorf("with %d waiting it claims %d more", maxPrefetch, n)
		}
		time.Sleep(time.Minute)
		for range 20 {
			time.Sleep(time.Second)
			b.room()
		}
		b.unfinished.Store(0)
		if n := b.room(); n != 10 {
			t.Errorf("after a minute without returns it claims %d, want 10", n)
		}
	})
}
