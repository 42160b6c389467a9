package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestOnlyPermitsOfRunningTasksAreKept: a task that is cancelled while it runs keeps its permit
// until its handler has ended. A rate has counted its start, and admits no fewer tasks for it.
func TestOnlyPermitsOfRunningTasksAreKept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		sources := keyed(t, s, 3, 4, Limit{Form: Running, Most: 1})
		for i, l := range []Limit{{Name: "kind k running", Form: Running, Most: 1}, {Name: "kind k rate 1ms", Form: Window, Most: 1, Per: time.Millisecond}, {Name: "kind k bucket 1ms", Form: Bucket, Most: 1, Per: time.Millisecond}} {
			sources[i].Limits = []Limit{l}
		}
		claim := func() (claims []*Claim, from map[int]bool) {
			t.Helper()
			result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: 3, Sources: sources})
			if err != nil {
				t.Fatal(err)
			}
			from = map[int]bool{}
			for _, c := range result.Claims {
				from[c.Place-1] = true
			}
			return result.Claims, from
		}
		running, _ := claim()
		p, keys := ActParams{Action: ActCancel, Wait: true}, []Key(nil)
		for _, c := range running {
			p.IDs, keys = append(p.IDs, c.ID), append(keys, Key{TaskID: c.ID, Fence: c.Fence})
		}
		if acted, err := s.Act(t.Context(), p); err != nil || len(acted.Done) != 3 {
			t.Fatalf("%d tasks are cancelled, error %v; want 3", len(acted.Done), err)
		}
		states, err := s.LimitStates(t.Context(), []Limit{sources[1].Limits[0], sources[2].Limits[0]})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range states {
			if l.Wait > time.Second {
				t.Errorf("%s admits a task in %v", l.Name, l.Wait)
			}
		}
		if _, from := claim(); from[0] {
			t.Error("a task is claimed beside one whose handler has not ended")
		}
		if err := s.FreePermits(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
		if _, from := claim(); !from[0] {
			t.Error("no task is claimed after the handler has ended")
		}
	})
}
