package lanes

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestLaterPrioritiesHaveTheirShare: while urgent tasks wait, later priorities have the share that was set, whether a
// claim takes one task or many. Without urgent tasks they get all tasks, and no share is saved up.
func TestLaterPrioritiesHaveTheirShare(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, room := range []int{1, 7, 500} {
		known := NewTracker(rules{unknownDelays, noLimits}, 10)
		lane := func(priority int) store.Lane {
			return store.Lane{State: statements.StateOpen, Kind: "k", Priority: priority}
		}
		tasks := func(claims int) (counts [3]int) {
			for range claims {
				first := known.Due(now, 100)[0]
				known.BeginClaim([]store.Lane{first})
				known.Took(first, room)
				known.Advance(first, known.Lanes[first].Due, 0)
				counts[first.Priority] += room
			}
			return counts
		}
		known.Hint(lane(1), now)
		if got := tasks(100); got[1] != 100*room {
			t.Errorf("in claims of %d, the low priority alone had %v", room, got)
		}
		known.Hint(lane(0), now)
		if got := tasks(1); got[1] != 0 {
			t.Errorf("in claims of %d, the low priority was next with %v when urgent tasks came", room, got)
		}
		if got := tasks(1000); got[1] < 99*room || got[1] > 101*room {
			t.Errorf("in claims of %d, two priorities had %v of %d tasks, want 90%% and 10%%", room, got, 1000*room)
		}
		known.Hint(lane(2), now)
		if got := tasks(10_000); got[0] < 8990*room || got[0] > 9010*room || got[1] < 890*room || got[1] > 910*room {
			t.Errorf("in claims of %d, three priorities had %v of %d tasks, want 90%%, 9%% and 1%%", room, got, 10_000*room)
		}
	}
}

// TestPrioritiesAreStrictWithoutAShare: unless a share is set, later priorities wait.
func TestPrioritiesAreStrictWithoutAShare(t *testing.T) {
	t.Parallel()
	now, known := time.Now(), NewTracker(rules{unknownDelays, noLimits}, 0)
	urgent, low := store.Lane{State: statements.StateOpen, Kind: "k"}, store.Lane{State: statements.StateOpen, Kind: "k", Priority: 1}
	known.Hint(urgent, now)
	known.Hint(low, now)
	for range 1000 {
		if first := known.Due(now, 10)[0]; first != urgent {
			t.Fatalf("the next lane is %v", first)
		}
		known.Took(urgent, 10)
		known.Advance(urgent, now, 0)
	}
}
