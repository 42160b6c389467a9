package falldue

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
		run  *taskRun
		want outcome
	}{
		"cancelled or deleted":             {&taskRun{lease: lease{until: later}}, outcomeCancelled},
		"the cancel was noticed":           {&taskRun{lease: lease{until: later, lost: true, cancelled: true}}, outcomeCancelled},
		"the lease is over":                {&taskRun{lease: lease{}}, outcomeLost},
		"the lease was lost":               {&taskRun{lease: lease{until: later, lost: true}}, outcomeLost},
		"DoneTx may have settled it":       {&taskRun{lease: lease{until: later, maybeSettled: true}}, outcomeDone},
		"DoneTx has settled it before":     {&taskRun{lease: lease{settled: true}}, outcomeDone},
		"DoneTx, and the lease is over":    {&taskRun{lease: lease{maybeSettled: true}}, outcomeLost},
		"the first answer was lost: done":  {&taskRun{lease: lease{until: later}, unsure: true, end: endIn(statements.StateDone)}, outcomeDone},
		"the first answer was lost: given": {&taskRun{lease: lease{until: later}, unsure: true, end: endIn(statements.StateOpen)}, outcomeGivenBack},
	} {
		if got := c.run.lostOutcome(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func endIn(state string) (e store.Settlement) {
	e.State = state
	return e
}
