package run

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestLostRunsHaveOutcomes: what became of a run whose claim is gone when it is settled.
func TestLostRunsHaveOutcomes(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		run  *Run
		want outcome.Outcome
	}{
		"cancelled or deleted":             {&Run{lease: lease{until: later}}, outcome.Cancelled},
		"the cancel was noticed":           {&Run{lease: lease{until: later, lost: true, cancelled: true}}, outcome.Cancelled},
		"the lease is over":                {&Run{lease: lease{}}, outcome.Lost},
		"the lease was lost":               {&Run{lease: lease{until: later, lost: true}}, outcome.Lost},
		"DoneTx may have settled it":       {&Run{lease: lease{until: later, maybeSettled: true}}, outcome.Done},
		"DoneTx has settled it before":     {&Run{lease: lease{settled: true}}, outcome.Done},
		"DoneTx, and the lease is over":    {&Run{lease: lease{maybeSettled: true}}, outcome.Lost},
		"the first answer was lost: done":  {&Run{lease: lease{until: later}, unsure: true, end: endIn(statements.StateDone)}, outcome.Done},
		"the first answer was lost: given": {&Run{lease: lease{until: later}, unsure: true, end: endIn(statements.StateOpen)}, outcome.Released},
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
