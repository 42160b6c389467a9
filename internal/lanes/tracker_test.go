package lanes

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestHintsDuringClaimsAndSweepsAreKept: a task that comes into a lane while a claim
// or a sweep runs may be missing in the answer, and must not be forgotten.
func TestHintsDuringClaimsAndSweepsAreKept(t *testing.T) {
	t.Parallel()
	at, start := store.Lane{State: "open", Kind: "k"}, time.Now()
	before, after, later := start.Add(-time.Second), start.Add(time.Second), start.Add(time.Hour)
	for _, c := range []struct {
		name string
		do   func(*Tracker)
		want time.Time // zero if the lane is not known
	}{
		{"a claim empties a lane", func(l *Tracker) { l.Emptied([]store.Lane{at}, nil, start) }, time.Time{}},
		{"a claim empties a lane into which a task comes meanwhile", func(l *Tracker) { l.Hint(at, after); l.Emptied([]store.Lane{at}, nil, start) }, after},
		{"two tasks come meanwhile", func(l *Tracker) { l.Hint(at, later); l.Hint(at, after); l.Emptied([]store.Lane{at}, nil, start) }, after},
		{"a sweep finds nothing", func(l *Tracker) { swept(l, nil, 0, start) }, time.Time{}},
		{"a sweep finds nothing, and a task comes meanwhile", func(l *Tracker) { l.Hint(at, after); swept(l, nil, 0, start) }, after},
		{"a sweep finds a delayed task", func(l *Tracker) { swept(l, []FirstTask{{Lane: at, Due: later, Anchor: 7}}, 0, start) }, later},
		{"a sweep finds a delayed task, and another comes meanwhile", func(l *Tracker) {
			l.Hint(at, after)
			swept(l, []FirstTask{{Lane: at, Due: later, Anchor: 7}}, 0, start)
		}, after},
		{"a sweep finds a task, and a delayed one comes meanwhile", func(l *Tracker) { l.Hint(at, later); swept(l, []FirstTask{{Lane: at, Due: after}}, 0, start) }, after},
	} {
		known := NewTracker(rules{unknownDelays, noLimits}, 0)
		known.Hint(at, before)
		known.BeginClaim([]store.Lane{at})
		known.BeginSweep()
		c.do(known)
		if got := known.stateOf(at).Due; !got.Equal(c.want) {
			t.Errorf("%s: the lane is due %v after, want %v", c.name, got.Sub(start), c.want.Sub(start))
		}
	}
}

// TestHintBeforeFirstTaskResetsSince: the anchor of a new first task may be before the
// anchor from which claims search.
func TestHintBeforeFirstTaskResetsSince(t *testing.T) {
	t.Parallel()
	at, now := store.Lane{State: "open", Kind: "k"}, time.Now()
	known := NewTracker(rules{unknownDelays, noLimits}, 0)
	known.Found([]FirstTask{{Lane: at, Due: now.Add(time.Hour), Anchor: 7}})
	known.Hint(at, now.Add(2*time.Hour))
	if f := known.Lanes[at]; f.scanFrom != 7 || !f.Due.Equal(now.Add(time.Hour)) {
		t.Errorf("a later task: due in %v from %d, want an hour from 7", f.Due.Sub(now), f.scanFrom)
	}
	known.Hint(at, now)
	if f := known.Lanes[at]; f.scanFrom != 0 || !f.Due.Equal(now) {
		t.Errorf("an earlier task: due in %v from %d, want now from 0", f.Due.Sub(now), f.scanFrom)
	}
}

// TestDueListsTheFirst: of many due lanes, Due lists those with the lowest priorities,
// and of these the ones that have been due for longest.
func TestDueListsTheFirst(t *testing.T) {
	t.Parallel()
	const lanes, most = 5000, 100
	now, known := time.Now(), NewTracker(rules{unknownDelays, noLimits}, 0)
	for _, i := range rand.Perm(lanes) {
		known.Hint(store.Lane{State: "open", Kind: "k", Priority: i / 1000, Attempts: i}, now.Add(-time.Duration(lanes-i)*time.Second))
		known.Hint(store.Lane{State: "open", Kind: "later", Attempts: i}, now.Add(time.Second))
	}
	due := known.Due(now, most)
	if len(due) != most {
		t.Fatalf("%d lanes are listed, want %d", len(due), most)
	}
	for i, at := range due {
		if at.Attempts != i {
			t.Fatalf("place %d has lane %d, want %d", i, at.Attempts, i)
		}
	}
	if all := known.Due(now, 2*lanes); len(all) != lanes {
		t.Errorf("%d lanes are due, want %d", len(all), lanes)
	}
}

// BenchmarkDue measures Due with many due lanes.
func BenchmarkDue(b *testing.B) {
	for name, at := range map[string]func(i int) store.Lane{
		"attempts":   func(i int) store.Lane { return store.Lane{State: "open", Kind: "k", Attempts: i} },
		"priorities": func(i int) store.Lane { return store.Lane{State: "open", Kind: "k", Priority: i} },
		"keys":       func(i int) store.Lane { return store.Lane{State: "open", Kind: "k", Key: strconv.Itoa(i)} },
		"endpoints": func(i int) store.Lane {
			return store.Lane{State: "open", Kind: "k", Key: fmt.Sprintf("tenant=%d/endpoint=%d", i%20, i)}
		},
	} {
		b.Run(name, func(b *testing.B) {
			now, known := time.Now(), NewTracker(rules{unknownDelays, noLimits}, 0)
			for i := range 20_000 {
				known.Hint(at(i), now.Add(-time.Duration(i)))
			}
			for b.Loop() {
				known.Due(now, 128)
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
	known, start := NewTracker(rules{unknownDelays, noLimits}, 0), time.Now()
	since := func(what string, want int64) {
		t.Helper()
		known.Hint(at, time.Now())
		if got := known.BeginClaim([]store.Lane{at}); got[0].Since != want {
			t.Errorf("%s, a claim looks from %d, want %d", what, got[0].Since, want)
		}
	}
	since("before the first claim", 0)
	known.Emptied([]store.Lane{at}, map[store.Lane]int64{at: last}, time.Now())
	since("after a claim that emptied the lane", last-margin)
	known.Emptied([]store.Lane{at}, nil, time.Now())
	since("after a claim that found nothing", last-margin)
	known.Emptied([]store.Lane{at}, nil, time.Now())
	known.BeginSweep()
	swept(known, nil, now, time.Now())
	if got := known.Remembered(9); len(got) != 1 || got[0].Lane != at || got[0].Since != now-margin {
		t.Errorf("after a sweep, %+v is remembered", got)
	}
	since("after a sweep that found nothing", now-margin)
	known.BeginSweep()
	swept(known, []FirstTask{{Lane: at, Due: start, Anchor: 7, Now: now}}, now, time.Now())
	since("after a sweep that found a task from before", 7)
	known.Emptied([]store.Lane{at}, map[store.Lane]int64{at: 7}, time.Now())
	known.Hint(at, start.Add(-time.Hour))
	since("for a task that was due before it was stored", 0)
	for i := range 2 * maxEmpty {
		lane := store.Lane{State: "open", Kind: "k", Attempts: i}
		known.Hint(lane, start)
		known.BeginClaim([]store.Lane{lane})
		known.Emptied([]store.Lane{lane}, map[store.Lane]int64{lane: last}, time.Now())
	}
	if got := known.Remembered(2 * maxEmpty); len(got) != maxEmpty || got[0].Attempts != 2*maxEmpty-1 || len(known.Lanes) != maxEmpty {
		t.Errorf("%d empty lanes are remembered and %d in all, want the last %d", len(got), len(known.Lanes), maxEmpty)
	}
	known.Found([]FirstTask{{Lane: other, Due: start, Anchor: 7, Now: now}})
	if due := known.Due(time.Now(), 128); len(due) != 1 || due[0] != other {
		t.Errorf("due are %v, want the lane that a look found", due)
	}
}

// TestClaimsDuringASweepAreKept: a sweep's answer is older than the state that a claim has
// recorded since the sweep began.
func TestClaimsDuringASweepAreKept(t *testing.T) {
	t.Parallel()
	at, start := store.Lane{State: "open", Kind: "k"}, time.Now()
	known := NewTracker(rules{unknownDelays, noLimits}, 0)
	known.Hint(at, start)
	known.BeginSweep()
	known.Advance(at, start, 1e15)
	swept(known, nil, 0, time.Now())
	if due := known.Due(time.Now(), 1); len(due) != 1 || known.BeginClaim(due)[0].Since != 1e15 {
		t.Error("the tasks that a claim left in the lane are forgotten")
	}
	known.BeginSweep()
	known.Emptied([]store.Lane{at}, nil, time.Now())
	swept(known, []FirstTask{{Lane: at, Due: start, Anchor: 7}}, 0, start)
	if due := known.Due(time.Now(), 1); len(due) != 1 || known.BeginClaim(due)[0].Since != 7 {
		t.Error("a task that the sweep found before the last one claimed is forgotten")
	}
}

// TestLanesAreTimedAnew: when another policy takes effect, lanes are due by that policy, however
// they became known, including lanes that a limit holds back.
func TestLanesAreTimedAnew(t *testing.T) {
	t.Parallel()
	delay, now := time.Hour, time.Now()
	l := NewTracker(rules{func(store.Lane) (time.Duration, bool) { return delay, true }, noLimits}, 0)
	lane := func(kind string, attempts int) store.Lane {
		return store.Lane{State: statements.StateOpen, Kind: kind, Attempts: attempts}
	}
	l.Hint(lane("hinted", 1), now.Add(time.Hour))
	l.Found([]FirstTask{{Lane: lane("found", 1), Due: now.Add(30 * time.Minute), Delay: time.Hour, Anchor: 7}})
	l.Hint(lane("new", 0), now.Add(40*time.Minute))
	l.Hint(lane("held", 2), now.Add(time.Hour))
	l.Park(lane("held", 2), "k:held", time.Hour, 0, time.Hour)
	delay = 10 * time.Minute
	l.Retime()
	l.Retime() // again changes nothing
	for at, want := range map[store.Lane]time.Duration{lane("hinted", 1): 10 * time.Minute, lane("found", 1): -20 * time.Minute, lane("new", 0): 40 * time.Minute, lane("held", 2): 10 * time.Minute} {
		if got := l.Lanes[at].Due.Sub(now); got != want {
			t.Errorf("%s is due in %v, want %v", at.Kind, got, want)
		}
	}
	if due := l.Due(now, 9); len(due) != 1 || due[0].Kind != "found" {
		t.Errorf("due are %+v", due)
	}
}

// swept records a sweep of one part.
func swept(l *Tracker, found []FirstTask, now int64, start time.Time) {
	l.SweptPage(found)
	l.EndSweep(now, start)
}
