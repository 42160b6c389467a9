package run

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestLostRunsHaveOutcomes: a run has an outcome even if its claim is gone when it is settled.
func TestLostRunsHaveOutcomes(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	fine := func(*lease.Lease) {}
	doneTx := func(l *lease.Lease) { l.Settling() }
	for name, c := range map[string]struct {
		until  time.Time
		before func(*lease.Lease)
		unsure bool
		end    store.Settlement
		want   outcome.Outcome
	}{
		"cancelled or deleted":             {until: later, before: fine, want: outcome.Cancelled},
		"the cancel was noticed":           {until: later, before: cancel, want: outcome.Cancelled},
		"the lease has ended":              {before: fine, want: outcome.Lost},
		"the lease was lost":               {until: later, before: (*lease.Lease).Lose, want: outcome.Lost},
		"DoneTx may have settled it":       {until: later, before: doneTx, want: outcome.Done},
		"DoneTx has settled it before":     {until: later, before: func(l *lease.Lease) { l.Settling(); l.Gone(); l.Extended(time.Time{}, time.Time{}) }, want: outcome.Done},
		"DoneTx, and the lease has ended":  {before: doneTx, want: outcome.Lost},
		"the first answer was lost: done":  {until: later, before: fine, unsure: true, end: endIn(statements.StateDone), want: outcome.Done},
		"the first answer was lost: given": {until: later, before: fine, unsure: true, end: endIn(statements.StateOpen), want: outcome.Released},
	} {
		r := &Run{Lease: lease.New(&store.Claim{}, "", c.until), unsure: c.unsure, end: c.end}
		c.before(&r.Lease)
		if got := r.LostOutcome(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// cancel ends a lease, as if its task had been cancelled.
func cancel(l *lease.Lease) {
	leases := lease.NewSet()
	leases.Add(l)
	leases.Cancelled(map[int64]int64{l.Claim.ID: l.Claim.Fence})
}

func endIn(state string) (e store.Settlement) {
	e.State = state
	return e
}
