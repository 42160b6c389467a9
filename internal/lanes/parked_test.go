package lanes

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestClaimsInVainBackOff: a limit holds back a lane for longer with each claim in vain: from 4 up
// to 160 milliseconds, after other claims took the permits, and for 160 milliseconds after a claim took tasks.
func TestClaimsInVainBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known, at := NewTracker(rules{unknownDelays, noLimits}, 0), store.Lane{State: "open", Kind: "k", Key: "hot"}
		known.Hint(at, time.Now())
		// hold holds the lane back, and returns for how long.
		hold := func(wait time.Duration) time.Duration {
			t.Helper()
			start := time.Now()
			known.Park(at, "limit", wait, 0, releasePause)
			if due := known.Due(start, 1); len(due) > 0 && wait > 0 {
				t.Errorf("the lane is due while the limit holds it back")
			}
			retry, ok := known.Next()
			if !ok {
				t.Fatal("the lane is forgotten")
			}
			time.Sleep(time.Until(retry)) // by the clock of the bubble
			if due := known.Due(time.Now(), 1); len(due) != 1 {
				t.Errorf("the lane is not due again after %v", time.Since(start))
			}
			return time.Since(start)
		}
		for _, limits := range [][]time.Duration{{4, 8, 16, 32, 64, 128, 160, 160}, {160, 160}} {
			for _, ms := range limits {
				_, _, end := known.BeginLimited([]store.Lane{at}, 1)
				end()
				most := ms * time.Millisecond
				if got := hold(0); got < most/2 || got >= most {
					t.Errorf("the lane is held back for %v, want %v to %v", got, most/2, most)
				}
			}
			known.Took(at, 1) // when its tasks end, this process knows that their permits are free
		}
		if got := hold(3 * time.Second); got != 3*time.Second {
			t.Errorf("under a rate that admits a task in 3s the lane is held back for %v", got)
		}
		// A permit that this process frees makes the lane due, even while the claim is under way.
		known.Park(at, "limit", time.Hour, 0, releasePause)
		known.Freed([]string{"another limit"})
		if due := known.Due(time.Now(), 1); len(due) != 0 {
			t.Error("the permit of another limit makes the lane due")
		}
		known.Freed([]string{"limit"})
		if due := known.Due(time.Now(), 1); len(due) != 1 {
			t.Error("a permit was freed, and the lane is not due")
		}
		_, _, end := known.BeginLimited([]store.Lane{at}, 1)
		known.Freed([]string{"limit"})
		if got := hold(0); got != 0 {
			t.Errorf("a permit was freed after the claim began, and the lane is held back for %v", got)
		}
		end()
	})
}

// TestClaimsUnderWayShareNoLimit: of two claims, the second one leaves out the lanes with a limit of the first, and gets
// others instead. The permits that are freed during a claim stay known to it when another one begins.
func TestClaimsUnderWayShareNoLimit(t *testing.T) {
	t.Parallel()
	lane := func(key string) store.Lane { return store.Lane{State: "open", Kind: "k", Key: key} }
	a, b, c := lane("a"), lane("b"), lane("c")
	perKey := func(at store.Lane) []store.Limit { return []store.Limit{{Name: "of " + at.Key}} }
	l := NewTracker(limitedRules{rules{unknownDelays, allLimited}, perKey}, 0)
	for _, at := range []store.Lane{a, b, c} {
		l.Hint(at, time.Now().Add(-time.Second))
	}
	first, _, _ := l.BeginLimited(l.Due(time.Now(), 2), 2)
	second, limits, end := l.BeginLimited(l.Due(time.Now(), 2), 2)
	if len(first) != 2 || len(second) != 1 || slices.Contains(first, second[0]) {
		t.Fatalf("claims from %v and %v, want two lanes and then the third one", first, second)
	}
	if want := [][]store.Limit{perKey(second[0])}; !reflect.DeepEqual(limits, want) {
		t.Errorf("the second claim has the limits %v, want %v", limits, want)
	}
	if third, _, _ := l.BeginLimited(l.Due(time.Now(), 2), 2); len(third) != 0 {
		t.Errorf("a third claim from %v", third)
	}
	l.Freed([]string{"of " + first[0].Key})
	end()
	if again, _, _ := l.BeginLimited(l.Due(time.Now(), 3), 1); !slices.Equal(again, second) {
		t.Errorf("after the end of the second claim, another one from %v, want %v", again, second)
	}
	l.Park(first[0], "of "+first[0].Key, time.Hour, 0, time.Hour)
	if due := l.Due(time.Now(), 3); !slices.Contains(due, first[0]) {
		t.Errorf("a permit was freed during the claim, and due are only %v", due)
	}

	shared := func(store.Lane) []store.Limit { return []store.Limit{{Name: "of all"}} }
	l = NewTracker(limitedRules{rules{unknownDelays, allLimited}, shared}, 0)
	if both, _, _ := l.BeginLimited([]store.Lane{a, b}, 2); len(both) != 2 {
		t.Errorf("a claim from %v, want both lanes of its own limit", both)
	}
	if none, _, _ := l.BeginLimited([]store.Lane{c}, 1); len(none) != 0 {
		t.Errorf("another claim under that limit from %v", none)
	}
}

// limitedRules are rules with limits.
type limitedRules struct {
	rules
	limits func(store.Lane) []store.Limit
}

func (r limitedRules) LimitsOf(at store.Lane) []store.Limit { return r.limits(at) }

// unknownDelays knows the delay of no lane.
func unknownDelays(store.Lane) (time.Duration, bool) { return 0, false }

// rules are the Rules of tests.
type rules struct {
	delay   func(store.Lane) (time.Duration, bool)
	limited func(store.Lane) bool
}

func (r rules) DelayOf(at store.Lane) (time.Duration, bool) { return r.delay(at) }
func (r rules) Limited(at store.Lane) bool                  { return r.limited(at) }
func (r rules) Ordered(at store.Lane) bool                  { return r.limited(at) }
func (r rules) Weight(store.Lane) int                       { return 1 }
func (r rules) LimitsOf(store.Lane) []store.Limit           { return []store.Limit{{Name: "limit"}} }

// noLimits reports that the tasks of no lane have limits.
func noLimits(store.Lane) bool { return false }

// TestHeldUntil: a tracker knows until when limits have held a lane back, so that the rest of its tasks'
// wait is a wait for a worker.
func TestHeldUntil(t *testing.T) {
	t.Parallel()
	behind := func(due time.Duration) func(*Tracker, store.Lane) {
		return func(l *Tracker, at store.Lane) {
			l.ParkBehind(at, "limit", FirstTask{Due: time.Now().Add(due)}, time.Second)
		}
	}
	park := func(wait time.Duration) func(*Tracker, store.Lane) {
		return func(l *Tracker, at store.Lane) { l.Park(at, "limit", wait, 0, releasePause) }
	}
	freed := func(l *Tracker) { time.Sleep(time.Second); l.Freed([]string{"limit"}) }
	found := func(l *Tracker) { time.Sleep(time.Second); l.Open([]string{"limit"}) }
	retried := func(l *Tracker) { next, _ := l.Next(); time.Sleep(time.Until(next)); l.Due(time.Now(), 1) }
	for name, test := range map[string]struct {
		park func(*Tracker, store.Lane)
		end  func(*Tracker)
		want time.Duration
	}{
		"a permit is freed":                     {park(0), freed, time.Second},
		"another process has freed a permit":    {park(0), found, 0},
		"a guess proves nothing":                {park(0), retried, 0},
		"a rate admits a task":                  {park(time.Minute), retried, time.Minute},
		"the first of the sequence falls due":   {behind(time.Minute), retried, time.Minute},
		"the first of the sequence has ended":   {behind(time.Minute), freed, time.Second},
		"the first of the sequence already due": {behind(-time.Minute), retried, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, at := NewTracker(rules{unknownDelays, noLimits}, 0), store.Lane{State: "open", Kind: "k", Key: "key"}
			l.Hint(at, time.Now())
			if held := l.HeldUntil(at); !held.IsZero() {
				t.Errorf("%s: held until %v before any claim", name, held)
			}
			start := time.Now()
			l.BeginLimited([]store.Lane{at}, 1)
			test.park(l, at)
			test.end(l)
			// Times that are far off are rounded down.
			if got := l.HeldUntil(at).Sub(start); got > test.want || got < test.want-min(maxGrain, test.want/10) {
				t.Errorf("%s: held for %v, want %v", name, got, test.want)
			}
		})
	}
}
