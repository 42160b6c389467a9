package store

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestSlowLookups: after a slow join, claims unite SELECTs for a minute.
func TestSlowLookups(t *testing.T) {
	t.Parallel()
	var l lookups
	now := time.Now()
	if l.took(slowLookup, 10, now); !l.quick(now) {
		t.Error("a quick join is taken for a slow one")
	}
	if l.took(slowLookup+11*slowLane, 10, now); l.quick(now.Add(lookupPause - 1)) {
		t.Error("after a slow join, the next one is tried immediately")
	}
	if !l.quick(now.Add(lookupPause)) {
		t.Error("after a slow join, none is tried again")
	}
}

// TestClaimsFindTheSame: a lateral join and a union of SELECTs find tasks of each source, up to its room.
func TestClaimsFindTheSame(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		if !statements.UnitesLanes(s.server) {
			return // there is one way to search
		}
		p := ClaimParams{Queue: "default", Sources: keyed(t, s, 5, 4, Limit{Form: Running, Most: 4})}
		rooms := []int{1, 3, 4, 4, 4} // the second and the third belong to one join
		var wanted []wantedTasks
		for i, room := range rooms {
			wanted = append(wanted, wantedTasks{source: i, room: room})
		}
		for _, next := range []int64{0, math.MaxInt64} {
			s.lookups.next.Store(next)
			found, err := inTx(t.Context(), s, func(x runner) ([]*Claim, error) { return s.findIn(t.Context(), x, p, wanted) })
			if err != nil {
				t.Fatal(err)
			}
			counts := make([]int, len(rooms))
			for _, c := range found {
				counts[c.Place-1]++
			}
			if !slices.Equal(counts, rooms) {
				t.Errorf("found %v tasks with the next join at %d, want %v", counts, next, rooms)
			}
		}
	})
}
