package lanes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestLanesTakeTurns: one lane of each kind, and of each first part of a key, comes before a second one. First come
// those from which the fewest tasks were taken, and of these the ones that have waited for longest.
func TestLanesTakeTurns(t *testing.T) {
	t.Parallel()
	now, known := time.Now(), NewTracker(rules{unknownDelays, noLimits}, 0)
	lane := func(kind, key string, age time.Duration) store.Lane {
		at := store.Lane{State: statements.StateOpen, Kind: kind, Key: key}
		known.Hint(at, now.Add(-age))
		return at
	}
	a1, a2, a3 := lane("k", "t=a/e=1", 9*time.Hour), lane("k", "t=a/e=2", 8*time.Hour), lane("k", "t=a/e=3", 7*time.Hour)
	b1, plain, key, other := lane("k", "t=b/e=1", 6*time.Hour), lane("k", "", 5*time.Hour), lane("k", "7/8", 4*time.Hour), lane("other", "t=a/e=1", 3*time.Hour)
	for i, c := range []struct {
		want []store.Lane
		took int // from the first lane, which has more tasks
	}{
		{[]store.Lane{a1, b1, plain, key, other, a2, a3}, 10},
		{[]store.Lane{b1, plain, key, other, a2, a3, a1}, 1},
		{[]store.Lane{plain, key, other, b1, a2, a3, a1}, 20},
		{[]store.Lane{key, other, b1, a2, plain, a3, a1}, 20},
		{[]store.Lane{other, b1, a2, plain, key, a3, a1}, 20},
		{[]store.Lane{b1, a2, plain, key, other, a3, a1}, 20},
		{[]store.Lane{a2, plain, key, other, b1, a3, a1}, 1},
	} {
		due := known.Due(now, 10)
		if !slices.Equal(due, c.want) {
			t.Fatalf("after %d claims %v are due, want %v", i, due, c.want)
		}
		if few := known.Due(now, 2); !slices.Equal(few, c.want[:2]) {
			t.Fatalf("after %d claims the first two are %v", i, few)
		}
		known.Took(due[0], c.took)
		known.Advance(due[0], known.Lanes[due[0]].Due, 0)
	}
}

// TestNewTurnsComeNext: a tenant who has had no tasks is next, however many lanes and tasks of another one wait,
// and then has as many tasks as the other one.
func TestNewTurnsComeNext(t *testing.T) {
	t.Parallel()
	now, known := time.Now(), NewTracker(rules{unknownDelays, noLimits}, 0)
	for i := range 1000 {
		known.Hint(store.Lane{State: statements.StateOpen, Kind: "k", Key: fmt.Sprint("t=a/e=", i)}, now.Add(-time.Hour))
	}
	take := func() string { // one task, of a lane with more tasks
		at := known.Due(now, 1)[0]
		known.Took(at, 1)
		known.Advance(at, known.Lanes[at].Due, 0)
		return at.Key[:3]
	}
	for range 100 {
		take()
	}
	b := store.Lane{State: statements.StateOpen, Kind: "k", Key: "t=b/e=1"}
	for range 3 {
		known.Hint(b, now)
		counts := map[string]int{}
		if first := take(); first != "t=b" {
			t.Fatalf("the next task is of %s, want of the tenant who has just come", first)
		}
		for range 100 {
			counts[take()]++
		}
		if counts["t=a"] != 50 || counts["t=b"] != 50 {
			t.Errorf("of 100 tasks tenants had %v", counts)
		}
		known.BeginClaim([]store.Lane{b})
		if known.Emptied([]store.Lane{b}, nil, now); take() != "t=a" {
			t.Error("the other tenant is not next")
		}
	}
}

// weighted are rules with weights by the first parts of keys. The default weight is 1.
type weighted struct {
	rules
	weights map[string]int
}

func (w weighted) Weight(at store.Lane) int { return max(w.weights[store.TurnOf(at).Key], 1) }

// TestTurnsHaveWeights: while tenants with different weights wait, each has tasks by its weight, however many tasks
// a claim takes. A tenant that comes later has no more, and a changed weight counts from the next claim on.
func TestTurnsHaveWeights(t *testing.T) {
	t.Parallel()
	now, weights := time.Now(), map[string]int{"t=a": 3, "t=c": 100}
	known := NewTracker(weighted{rules{unknownDelays, noLimits}, weights}, 0)
	come := func(tenant string) {
		for i := range 5 {
			known.Hint(store.Lane{State: statements.StateOpen, Kind: "k", Key: fmt.Sprint(tenant, "/e=", i)}, now)
		}
	}
	tasks := func(room int) map[string]int { // of claims from lanes with more tasks
		counts := map[string]int{}
		for total := 0; total < 5000; {
			sources := known.BeginClaim(known.Due(now, min(room, 100)))
			store.Share(sources, room)
			for left := room; left > 0; sources = sources[1:] {
				at, took := sources[0].Lane, min(sources[0].Room, left)
				known.Took(at, took)
				known.Advance(at, known.Lanes[at].Due, 0)
				counts[at.Key[:3]] += took
				total, left = total+took, left-took
			}
		}
		return counts
	}
	check := func(what string, room int, want map[string]int) {
		t.Helper()
		got, all, sum := tasks(room), 0, 0
		for tenant, weight := range want {
			all, sum = all+got[tenant], sum+weight
		}
		for tenant, weight := range want {
			if share := float64(got[tenant]) / float64(all) * float64(sum) / float64(weight); share < 0.9 || share > 1.1 {
				t.Errorf("%s, with room for %d, tenants had %v tasks, want shares of %v", what, room, got, want)
				return
			}
		}
	}
	come("t=a")
	for _, room := range []int{1, 10, 500} {
		check("alone", room, map[string]int{"t=a": 1})
	}
	come("t=b")
	for _, room := range []int{1, 10, 500} {
		check("3 to 1", room, map[string]int{"t=a": 3, "t=b": 1})
	}
	weights["t=b"] = 6
	check("1 to 2", 1, map[string]int{"t=a": 1, "t=b": 2})
	weights["t=b"] = 1
	come("t=c")
	check("3 to 1 to 100", 1, map[string]int{"t=a": 3, "t=b": 1, "t=c": 100})
}

// TestLanesLeaveTheirGroups: a lane that is due later, or has other limits or another policy, keeps no place among the
// lanes of its turn, and its turn keeps the tasks that were taken.
func TestLanesLeaveTheirGroups(t *testing.T) {
	t.Parallel()
	now := time.Now()
	delay := time.Hour
	known := NewTracker(rules{func(store.Lane) (time.Duration, bool) { return delay, true }, noLimits}, 0)
	a, b := store.Lane{State: statements.StateOpen, Kind: "a", Attempts: 1}, store.Lane{State: statements.StateOpen, Kind: "b", Attempts: 1}
	due := func(what string, want ...store.Lane) {
		t.Helper()
		if got := known.Due(now, 9); !slices.Equal(got, want) {
			t.Errorf("%s, %v are due, want %v", what, got, want)
		}
	}
	known.Hint(a, now.Add(-time.Minute))
	known.Hint(b, now.Add(-time.Second))
	due("at first", a, b)
	known.Took(a, 5)
	known.Advance(a, now.Add(time.Minute), 0)
	due("while a is due later", b)
	if next, _ := known.Next(); !next.Equal(now.Add(-time.Second)) {
		t.Errorf("the next lane is due in %v", next.Sub(now))
	}
	known.Hint(a, now.Add(-time.Minute))
	due("when a is due again", b, a)
	delay = 2 * time.Hour
	if known.Retime(); known.waiting[0].dueCount(now) != 0 {
		t.Error("lanes are due before their new policy's delay")
	}
	delay = time.Hour
	known.Retime()
	due("by the policy of before", b, a)
	known.BeginClaim([]store.Lane{a, b})
	known.Emptied([]store.Lane{b}, nil, time.Now())
	due("when b is empty", a)
	known.Emptied([]store.Lane{a}, nil, time.Now())
	if due("when both are empty"); len(known.waiting) != 0 {
		t.Errorf("%d priorities have lanes", len(known.waiting))
	}
}
