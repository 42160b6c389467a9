package claim

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
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

// TestFirstClaimIsNotLarge: a poller's first claim takes no slot, and therefore few tasks.
func TestFirstClaimIsNotLarge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slot int64
		want []store.ClaimParams
	}{
		{1, []store.ClaimParams{{Limit: slotThreshold}, {Limit: store.MaxBatch, Slot: 1}}},
		{0, []store.ClaimParams{{Limit: store.MaxBatch}, {Limit: store.MaxBatch}}}, // a server without slots
	} {
		l := refusingLane{at: store.Lane{State: statements.StateOpen, Kind: "k"}, refuses: func(int64) bool { return false }}
		for id := range int64(2 * store.MaxBatch) {
			l.tasks = append(l.tasks, id)
		}
		p := l.poller(dialect.Other, &strings.Builder{})
		p.Slot = c.slot
		claim := l.table.claim
		var sent []store.ClaimParams
		l.table.claim = func(params store.ClaimParams) ([]*store.Claim, error) {
			sent = append(sent, store.ClaimParams{Limit: params.Limit, Slot: params.Slot})
			return claim(params)
		}
		for range c.want {
			p.lanes.Hint(l.at, time.Now())
			if _, err := p.claimDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.EqualFunc(sent, c.want, func(a, b store.ClaimParams) bool { return a.Limit == b.Limit && a.Slot == b.Slot }) {
			t.Errorf("with slots of %d the claims are %+v, want %+v", c.slot, sent, c.want)
		}
	}
}
