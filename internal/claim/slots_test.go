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
		tries := 0
		for start := time.Now(); q.needed(store.MaxBatch); tries++ {
			wait := q.refused()
			if wait < minSlotWait/2 || wait >= maxSlotWait {
				t.Fatalf("wait %d is %v", tries, wait)
			}
			time.Sleep(wait)
			if time.Since(start) > SlotPatience+maxSlotWait {
				t.Fatal("it waits for ever")
			}
		}
		if tries < 8 || tries > 20 {
			t.Errorf("%d tries in %v", tries, SlotPatience)
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
