package run

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

func TestHandlerStartsOnlyWhileItsLeaseHolds(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{-time.Millisecond, time.Hour} {
		started := false
		r := &Run{
			Env:         &Env{Observer: noObserver{}},
			ClaimResult: outcome.ClaimResult{Claim: &store.Claim{Claimed: statements.Claimed{MaxAttempts: 1}, Attempts: 1}},
			handler:     &Handler{Run: func(context.Context, *Run) *outcome.Failure { started = true; return nil }},
			Lease:       lease.New(&store.Claim{}, "", time.Now().Add(left)),
		}
		if _, _, ours := r.execute(t.Context(), nil); ours != (left > 0) || started != ours {
			t.Errorf("with %v of its lease left: started %t, settled %t", left, started, ours)
		}
	}
}

// TestReleasedTasksAreNotDueEarlier: the database makes a claim a minute after it was sent, and the task is given back. It
// has waited for no longer than since the claim was made, so its anchor must not be earlier than before.
func TestReleasedTasksAreNotDueEarlier(t *testing.T) {
	t.Parallel()
	c := &store.Claim{Claimed: statements.Claimed{ID: 1, Fence: 1, Anchor: 1_000_000, Now: 3_000_000}, Attempts: 1}
	d := NewDispatcher(DispatcherConfig{Env: &Env{}, Budget: NewBudget(1, 0)})
	var r Run
	d.Begin(&r, c, nil, time.Now().Add(-time.Minute))
	if wait := store.Duration(r.Release().Wait); wait > -2*time.Second || wait < -30*time.Second {
		t.Errorf("the anchor is %v from the release, want 2 seconds before the claim", wait)
	}
}
