package ops

import (
	"testing"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestHistoryHasTheStepThatHeldLast: an override that has ended, or that another change replaced,
// takes no more steps.
func TestHistoryHasTheStepThatHeldLast(t *testing.T) {
	t.Parallel()
	const minute, steps = 60_000_000, `{"steps":[{"policy":"4 * original"},{"after_us":60000000,"policy":"3 * original"},{"after_us":600000000,"policy":"2 * original"}]}`
	var changes []store.StoredChange
	add := func(subject, what string, at, ends int64) {
		c := store.StoredChange{ID: int64(len(changes) + 1), Created: at, Now: 1000 * minute}
		c.Subject, c.What, c.Ends = subject, what, ends
		if what == statements.ChangePolicy {
			c.Value = steps
		}
		changes = append(changes, c)
	}
	add("kind:a", statements.ChangePolicy, minute, 2*minute)
	add("kind:b", statements.ChangePolicy, 2*minute, 0)
	add("kind:a", statements.ChangePolicy, 5*minute, 7*minute)
	add("kind:b", statements.ChangeClearPolicy, 10*minute, 0)
	add("kind:b", statements.ChangePolicy, 900*minute, 0)
	add("kind:c", statements.ChangePolicy, 999*minute, 0)
	add("kind:d", statements.ChangePolicy, 1000*minute, 0)
	list := overrideHistory(changes)
	for i, want := range []string{"4 * original", "3 * original", "3 * original", "", "2 * original", "3 * original", "4 * original"} {
		if got := list[i].Formula.String(); got != want || list[i].At.UnixMicro() != changes[i].Created {
			t.Errorf("change %d: %q held last, want %q", i+1, got, want)
		}
	}
}
