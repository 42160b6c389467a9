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
