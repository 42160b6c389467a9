package run

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestLostRunsHaveOutcomes: what became of a run whose claim is gone when it is settled.
func TestLostRunsHaveOutcomes(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		run  *Run
		want Outcome
	}{
		"cancelled or deleted":             {&Run{Lease: Lease{Until: later}}, OutcomeCancelled},
		"the cancel was noticed":           {&Run{Lease: Lease{Until: later, lost: true, cancelled: true}}, OutcomeCancelled},
		"the lease is over":                {&Run{Lease: Lease{}}, OutcomeLost},
		"the lease was lost":               {&Run{Lease: Lease{Until: later, lost: true}}, OutcomeLost},
		"DoneTx may have settled it":       {&Run{Lease: Lease{Until: later, maybeSettled: true}}, OutcomeDone},
		"DoneTx has settled it before":     {&Run{Lease: Lease{settled: true}}, OutcomeDone},
		"DoneTx, and the lease is over":    {&Run{Lease: Lease{maybeSettled: true}}, OutcomeLost},
		"the first answer was lost: done":  {&Run{Lease: Lease{Until: later}, unsure: true, end: endIn(statements.StateDone)}, OutcomeDone},
		"the first answer was lost: given": {&Run{Lease: Lease{Until: later}, unsure: true, end: endIn(statements.StateOpen)}, OutcomeGivenBack},
	} {
		if got := c.run.LostOutcome(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func endIn(state string) (e store.Settlement) {
	e.State = state
	return e
}
