package claim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/run"
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
		// The poller asks for the holders of the slots again and again, until they are the same as before.
		for i, holders := range []string{"a b", "b c", "", "b c", "b c"} {
			start := time.Now()
			for first := true; first || !q.impatient(); first = false {
				wait := q.refused()
				if wait < minSlotWait/2 || wait >= maxSlotWait {
					t.Fatalf("a wait is %v", wait)
				}
				time.Sleep(wait)
			}
			if took := time.Since(start); took < SlotPatience || took > SlotPatience+maxSlotWait {
				t.Errorf("the poller asks for the holders after %v, want %v", took, SlotPatience)
			}
			if changed, want := q.changeHands(holders), i != 4; changed != want {
				t.Errorf("at answer %d, %q, the slots change hands: %v, want %v", i, holders, changed, want)
			}
		}
		q.Claimed(store.MaxBatch, store.MaxBatch)
		if q.impatient() || !q.needed(store.MaxBatch) {
			t.Error("after one claim without a slot the next one is without, too")
		}
		if q.refused(); !q.changeHands("b c") {
			t.Error("a new wait begins with the holders of the wait before")
		}
		q.Claimed(1, 2)
		if q.needed(store.MaxBatch) {
			t.Error("a queue with hardly anything in it needs slots")
		}
	})
}

// TestNoClaimWithoutASlotWhileSlotsChangeHands: a poller waits for a slot as long as others make claims in both. It
// claims without a slot when the holders stay the same, or are not known.
func TestNoClaimWithoutASlotWhileSlotsChangeHands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked, changes int
		var failure error
		p := newTestPoller(PollerConfig{Table: fakeTable{slotHolders: func() (string, error) {
			asked++
			return fmt.Sprint(min(asked, changes)), failure
		}}}, fakeFinder{})
		waits := func() (asks int) {
			asked = 0
			p.slots.Claimed(store.MaxBatch, store.MaxBatch)
			for p.needsSlot(t.Context(), store.MaxBatch) {
				time.Sleep(p.slots.refused())
			}
			return asked
		}
		for _, changes = range []int{1, 100} {
			if got := waits(); got != changes+1 {
				t.Errorf("the poller asked %d times for holders that changed %d times", got, changes)
			}
		}
		failure = errors.New("no")
		if got := waits(); got != 1 {
			t.Errorf("the poller asked %d times for holders that are not known, want 1", got)
		}
	})
}

// TestPollersThatWaitForASlotDoNotSearch: among many busy processes, the searches of those that wait would slow down
// the claims. A poller searches again when it has claimed.
func TestPollersThatWaitForASlotDoNotSearch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wait = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 2*wait)
		defer cancel()
		start, asked, searches := time.Now(), 0, map[bool]int{} // searches by whether the slots are taken
		taken := func() bool { return time.Since(start) < wait }
		handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Zizq())}}
		p := newTestPoller(PollerConfig{
			Queue: "default", Budget: run.NewBudget(store.MaxBatch, 0), Handlers: handlers, Policies: policiesOf(run.PoliciesOf(handlers)),
			Table: fakeTable{claim: func(p store.ClaimParams) ([]*store.Claim, error) {
				if p.Slot != 0 && taken() {
					return nil, store.ErrNoSlot
				}
				return nil, nil
			}, slotHolders: func() (string, error) { asked++; return fmt.Sprint(asked), nil }},
			Dispatcher: noDispatcher{}, PollInterval: time.Second, Slot: 1, AscendingIDs: true,
		}, fakeFinder{find: func() ([]store.Head, error) { searches[taken()]++; return nil, nil }})
		p.slots.Claimed(store.MaxBatch, store.MaxBatch)
		p.lanes.Hint(store.Lane{State: "open", Kind: "k"}, start)
		p.work(ctx)
		if searches[true] > 2 || searches[false] < 5 {
			t.Errorf("while the slots were taken for %v, the worker searched %d times, want up to 2; afterwards %d times, want 5 or more", wait, searches[true], searches[false])
		}
	})
}
