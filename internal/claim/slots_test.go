package claim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

func TestSlotWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q slotWaiter
		if q.needed(store.MaxBatch) {
			t.Error("the first claim needs a slot")
		}
		q.Claimed(store.MaxBatch, store.MaxBatch)
		if !q.needed(store.MaxBatch) || q.needed(slotThreshold-1) {
			t.Error("after a large claim a worker of many handlers needs no slot, or one of few does")
		}
		q.Claimed(1, 1)
		if !q.needed(store.MaxBatch) {
			t.Error("a worker needs no slot although it never found less than it asked for")
		}
		// The waits of a poller that finds no slot, claim after claim.
		for i, want := range []time.Duration{8 * time.Second, 4 * time.Second, 2 * time.Second, time.Second, time.Second} {
			start := time.Now()
			for q.needed(store.MaxBatch) {
				wait := q.refused()
				if wait < minSlotWait/2 || wait >= maxSlotWait {
					t.Fatalf("a wait is %v", wait)
				}
				time.Sleep(wait)
			}
			if took := time.Since(start); took < want || took > want+maxSlotWait {
				t.Errorf("claim %d is without a slot after %v, want %v", i, took, want)
			}
			q.Claimed(store.MaxBatch, store.MaxBatch)
		}
		// A slot restores half of the patience.
		q.refused()
		q.Claimed(store.MaxBatch, store.MaxBatch)
		q.refused()
		time.Sleep(2*time.Second - 1)
		if !q.needed(store.MaxBatch) {
			t.Error("a poller that has had a slot waits no longer than before")
		}
		q.Claimed(store.MaxBatch, store.MaxBatch)
		if !q.needed(store.MaxBatch) {
			t.Error("after one claim without a slot it goes on without")
		}
		q.Claimed(1, 2)
		if q.needed(store.MaxBatch) {
			t.Error("a queue with hardly anything in it needs slots")
		}
	})
}
