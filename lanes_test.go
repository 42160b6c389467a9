package falldue

import (
	"math/rand/v2"
	"slices"
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
		{"a sweep finds nothing", func(l *laneTracker) { l.swept(nil, 0, start) }, time.Time{}},
		{"a sweep finds nothing, and a task comes meanwhile", func(l *laneTracker) { l.hint(at, after); l.swept(nil, 0, start) }, after},
		{"a sweep finds a delayed task", func(l *laneTracker) { l.swept([]firstTask{{Lane: at, due: later, anchor: 7}}, 0, start) }, later},
		{"a sweep finds a delayed task, and another comes meanwhile", func(l *laneTracker) {
			l.hint(at, after)
			l.swept([]firstTask{{Lane: at, due: later, anchor: 7}}, 0, start)
		}, after},
		{"a sweep finds a task, and a delayed one comes meanwhile", func(l *laneTracker) { l.hint(at, later); l.swept([]firstTask{{Lane: at, due: after}}, 0, start) }, after},
	} {
		known := newLaneTracker()
		known.hint(at, before)
		known.beginClaim([]store.Lane{at})
		known.beginSweep()
		c.do(known)
		if got := known.lane(at).due; !got.Equal(c.want) {
			t.Errorf("%s: the lane is due %v after, want %v", c.name, got.Sub(start), c.want.Sub(start))
		}
	}
}

// TestHintBeforeFirstTaskResetsSince: the anchor of a new first task may lie before the
// one from which claims look.
func TestHintBeforeFirstTaskResetsSince(t *testing.T) {
	t.Parallel()
	at, now := store.Lane{State: "open", Kind: "k"}, time.Now()
	known := newLaneTracker()
	known.found([]firstTask{{Lane: at, due: now.Add(time.Hour), anchor: 7}})
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

// TestKeysTakeTurns: lanes with keys of one kind come in the order of their turns, in the
// places of the kind. Other lanes stay where they are.
func TestKeysTakeTurns(t *testing.T) {
	t.Parallel()
	now, known := time.Now(), newLaneTracker()
	lane := func(kind, key string, age time.Duration) store.Lane {
		at := store.Lane{State: "open", Kind: kind, Key: key}
		known.hint(at, now.Add(-age))
		return at
	}
	busy, plain := lane("k", "busy", 9*time.Hour), lane("k", "", 8*time.Hour)
	other, second, third := lane("other", "busy", 7*time.Hour), lane("k", "second", 6*time.Hour), lane("k", "third", 5*time.Hour)
	for i, want := range [][]store.Lane{
		{busy, plain, other, second, third},
		{second, plain, other, third, busy},
		{third, plain, other, busy, second},
		{busy, plain, other, second, third},
	} {
		due := known.due(now, 10)
		if !slices.Equal(due, want) {
			t.Fatalf("after %d claims %v are due, want %v", i, due, want)
		}
		if i%2 == 0 {
			known.advance(due[0], known.lanes[due[0]].due, 0) // it has more tasks
		} else {
			known.admitted(due[0])
		}
	}
}

// BenchmarkDue measures due for a poller that knows many due lanes.
func BenchmarkDue(b *testing.B) {
	for name, at := range map[string]func(i int) store.Lane{
		"attempts":   func(i int) store.Lane { return store.Lane{State: "open", Kind: "k", Attempts: i} },
		"priorities": func(i int) store.Lane { return store.Lane{State: "open", Kind: "k", Priority: i} },
	} {
		b.Run(name, func(b *testing.B) {
			now, known := time.Now(), newLaneTracker()
			for i := range 20_000 {
				known.hint(at(i), now.Add(-time.Duration(i)))
			}
			for b.Loop() {
				known.due(now, maxSources)
			}
		})
	}
}

// TestEmptiedLanesAreRemembered: a claim of a task that comes into a lane that was
// emptied reads no index entry of the tasks that were claimed long before.
func TestEmptiedLanesAreRemembered(t *testing.T) {
	t.Parallel()
	const last, now, margin = int64(1e15), int64(2e15), int64(commitMargin / time.Microsecond)
	at, other := store.Lane{State: "open", Kind: "k"}, store.Lane{State: "open", Kind: "other"}
	known, start := newLaneTracker(), time.Now()
	since := func(what string, want int64) {
		t.Helper()
		known.hint(at, time.Now())
		if got := known.beginClaim([]store.Lane{at}); got[0] != want {
			t.Errorf("%s, a claim looks from %d, want %d", what, got[0], want)
		}
	}
	since("before the first claim", 0)
	known.emptied([]store.Lane{at}, map[store.Lane]int64{at: last}, time.Now())
	since("after a claim that emptied the lane", last-margin)
	known.emptied([]store.Lane{at}, nil, time.Now())
	since("after a claim that found nothing", last-margin)
	known.emptied([]store.Lane{at}, nil, time.Now())
	known.beginSweep()
	known.swept(nil, now, time.Now())
	if got := known.remembered(9); len(got) != 1 || got[0].Lane != at || got[0].Since != now-margin {
		t.Errorf("after a sweep, %+v is remembered", got)
	}
	since("after a sweep that found nothing", now-margin)
	known.beginSweep()
	known.swept([]firstTask{{Lane: at, due: start, anchor: 7, now: now}}, now, time.Now())
	since("after a sweep that found a task from before", 7)
	known.emptied([]store.Lane{at}, map[store.Lane]int64{at: 7}, time.Now())
	known.hint(at, start.Add(-time.Hour))
	since("for a task that was due before it was stored", 0)
	for i := range 2 * maxEmpty {
		lane := store.Lane{State: "open", Kind: "k", Attempts: i}
		known.hint(lane, start)
		known.beginClaim([]store.Lane{lane})
		known.emptied([]store.Lane{lane}, map[store.Lane]int64{lane: last}, time.Now())
	}
	if got := known.remembered(2 * maxEmpty); len(got) != maxEmpty || got[0].Attempts != 2*maxEmpty-1 || len(known.lanes) != maxEmpty {
		t.Errorf("%d empty lanes are remembered and %d in all, want the last %d", len(got), len(known.lanes), maxEmpty)
	}
	known.found([]firstTask{{Lane: other, due: start, anchor: 7, now: now}})
	if due := known.due(time.Now(), maxSources); len(due) != 1 || due[0] != other {
		t.Errorf("due are %v, want the lane that a look found", due)
	}
}

// TestClaimsDuringASweepAreKept: a sweep's answer is older than what a claim has found
// since the sweep began.
func TestClaimsDuringASweepAreKept(t *testing.T) {
	t.Parallel()
	at, start := store.Lane{State: "open", Kind: "k"}, time.Now()
	known := newLaneTracker()
	known.hint(at, start)
	known.beginSweep()
	known.advance(at, start, 1e15)
	known.swept(nil, 0, time.Now())
	if due := known.due(time.Now(), 1); len(due) != 1 || known.beginClaim(due)[0] != 1e15 {
		t.Error("the tasks that a claim left in the lane are forgotten")
	}
	known.beginSweep()
	known.emptied([]store.Lane{at}, nil, time.Now())
	known.swept([]firstTask{{Lane: at, due: start, anchor: 7}}, 0, start)
	if due := known.due(time.Now(), 1); len(due) != 1 || known.beginClaim(due)[0] != 7 {
		t.Error("a task that the sweep found before the last one claimed is forgotten")
	}
}
