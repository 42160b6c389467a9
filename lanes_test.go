package falldue

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestHintsDuringClaimsAndSweepsAreKept: a task that is put into a lane while a claim
// or a sweep runs may be missing in its answer, and must not be forgotten.
func TestHintsDuringClaimsAndSweepsAreKept(t *testing.T) {
	t.Parallel()
	at, start := store.Lane{State: "open", Kind: "k"}, time.Now()
	before, after, later := start.Add(-time.Second), start.Add(time.Second), start.Add(time.Hour)
	for _, c := range []struct {
		name string
		do   func(*laneTracker)
		want time.Time // zero if the lane is not known
	}{
		{"a claim empties a lane", func(l *laneTracker) { l.emptied([]store.Lane{at}, nil, start) }, time.Time{}},
		{"a claim empties a lane into which a task comes meanwhile", func(l *laneTracker) { l.hint(at, after); l.emptied([]store.Lane{at}, nil, start) }, after},
		{"two tasks come meanwhile", func(l *laneTracker) { l.hint(at, later); l.hint(at, after); l.emptied([]store.Lane{at}, nil, start) }, after},
		{"a sweep finds nothing", func(l *laneTracker) { l.swept(map[store.Lane]knownLane{}, start) }, time.Time{}},
		{"a sweep finds nothing, and a task comes meanwhile", func(l *laneTracker) { l.hint(at, after); l.swept(map[store.Lane]knownLane{}, start) }, after},
		{"a sweep finds a delayed task", func(l *laneTracker) { l.swept(map[store.Lane]knownLane{at: {due: later, since: 7}}, start) }, later},
		{"a sweep finds a delayed task, and another comes meanwhile", func(l *laneTracker) {
			l.hint(at, after)
			l.swept(map[store.Lane]knownLane{at: {due: later, since: 7}}, start)
		}, after},
		{"a sweep finds a task, and a delayed one comes meanwhile", func(l *laneTracker) { l.hint(at, later); l.swept(map[store.Lane]knownLane{at: {due: after}}, start) }, after},
	} {
		known := newLaneTracker()
		known.hint(at, before)
		known.beginClaim([]store.Lane{at})
		c.do(known)
		if got := known.lanes[at].due; !got.Equal(c.want) {
			t.Errorf("%s: the lane is due %v after, want %v", c.name, got.Sub(start), c.want.Sub(start))
		}
	}
}

// TestHintBeforeFirstTaskResetsSince: the anchor of a new first task may lie before the
// one from which claims look.
func TestHintBeforeFirstTaskResetsSince(t *testing.T) {
	t.Parallel()
	at, now := store.Lane{State: "open", Kind: "k"}, time.Now()
	known := &laneTracker{lanes: map[store.Lane]knownLane{at: {due: now.Add(time.Hour), since: 7}}}
	known.hint(at, now.Add(2*time.Hour))
	if f := known.lanes[at]; f.since != 7 || !f.due.Equal(now.Add(time.Hour)) {
		t.Errorf("a later task: due in %v from %d, want an hour from 7", f.due.Sub(now), f.since)
	}
	known.hint(at, now)
	if f := known.lanes[at]; f.since != 0 || !f.due.Equal(now) {
		t.Errorf("an earlier task: due in %v from %d, want now from 0", f.due.Sub(now), f.since)
	}
}

// TestDueListsTheFirst: of many due lanes, due lists those with the lowest priorities,
// and of these the ones that have been due for longest.
func TestDueListsTheFirst(t *testing.T) {
	t.Parallel()
	const lanes, most = 5000, 100
	now, known := time.Now(), newLaneTracker()
	for _, i := range rand.Perm(lanes) {
		known.hint(store.Lane{State: "open", Kind: "k", Priority: i / 1000, Attempts: i}, now.Add(-time.Duration(lanes-i)*time.Second))
		known.hint(store.Lane{State: "open", Kind: "later", Attempts: i}, now.Add(time.Second))
	}
	due := known.due(now, most)
	if len(due) != most {
		t.Fatalf("%d lanes are listed, want %d", len(due), most)
	}
	for i, at := range due {
		if at.Attempts != i {
			t.Fatalf("place %d has lane %d, want %d", i, at.Attempts, i)
		}
	}
	if all := known.due(now, 2*lanes); len(all) != lanes {
		t.Errorf("%d lanes are due, want %d", len(all), lanes)
	}
}

// BenchmarkDue measures due for a poller that knows many due lanes.
func BenchmarkDue(b *testing.B) {
	now, known := time.Now(), newLaneTracker()
	for i := range 20_000 {
		known.hint(store.Lane{State: "open", Kind: "k", Attempts: i}, now.Add(-time.Duration(i)))
	}
	for b.Loop() {
		known.due(now, maxSources)
	}
}
