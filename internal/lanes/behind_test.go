package lanes

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestLanesBehindATaskWaitForIt: a lane whose sequence waits for a task comes back after that task is due,
// when a sweep does not find the task in its place, when another policy makes the task due earlier, and
// after some minutes in any case.
func TestLanesBehindATaskWaitForIt(t *testing.T) {
	t.Parallel()
	const pause = time.Second
	next := store.Lane{State: statements.StateOpen, Kind: "k", Key: "a", Attempts: 1}
	held := next
	held.Attempts = 0
	for name, c := range map[string]struct {
		due         time.Duration // of the task
		change      func(l *Tracker, delay *time.Duration)
		least, most time.Duration
	}{
		"it falls due":   {due: time.Minute, least: time.Minute - maxGrain, most: time.Minute + 2*pause},
		"it is due":      {due: 0, least: pause / 2, most: 2 * pause},
		"it stays":       {due: time.Hour, least: recheck/2 - maxGrain, most: recheck},
		"it is found":    {due: time.Hour, change: func(l *Tracker, _ *time.Duration) { sweptAnchors(l, map[store.Lane]int64{next: 7, held: 5}) }, least: recheck/2 - maxGrain, most: recheck},
		"it has moved":   {due: time.Hour, change: func(l *Tracker, _ *time.Duration) { sweptAnchors(l, map[store.Lane]int64{next: 8, held: 5}) }},
		"it has gone":    {due: time.Hour, change: func(l *Tracker, _ *time.Duration) { sweptAnchors(l, map[store.Lane]int64{held: 5}) }},
		"it is due soon": {due: time.Hour, change: func(l *Tracker, delay *time.Duration) { *delay = 0; l.Retime() }},
		"it has ended":   {due: time.Hour, change: func(l *Tracker, _ *time.Duration) { l.Freed([]string{"order of a"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				delay := time.Hour
				l := NewTracker(rules{func(store.Lane) (time.Duration, bool) { return delay, true }, allLimited}, 0)
				l.Hint(held, time.Now())
				l.ParkBehind(held, "order of a", FirstTask{Lane: next, Due: time.Now().Add(c.due), Delay: delay, Anchor: 7}, pause)
				start := time.Now()
				if c.change != nil {
					c.change(l, &delay)
				}
				for !slices.Contains(l.Due(time.Now(), 2), held) { // the other one is next
					at, _ := l.Next()
					time.Sleep(max(time.Until(at), time.Millisecond)) // by the clock of the bubble
				}
				if took := time.Since(start); took < c.least || took > c.most {
					t.Errorf("the lane came back after %v, want %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}

// sweptAnchors makes a sweep find these first tasks. All but the failed ones are due.
func sweptAnchors(l *Tracker, anchors map[store.Lane]int64) {
	l.BeginSweep()
	var found []FirstTask
	for at, anchor := range anchors {
		found = append(found, FirstTask{Lane: at, Due: time.Now().Add(time.Duration(at.Attempts) * time.Hour), Delay: time.Duration(at.Attempts) * time.Hour, Anchor: anchor})
	}
	swept(l, found, 0, time.Now())
}

func allLimited(store.Lane) bool { return true }

// TestRetriedLanesLeaveOthersTheirShare: lanes that a limit held back when they were last tried get
// half of the places of a claim under limits, however many and however long they have been due. After a
// claim in vain, lanes without limits of any priority come next.
func TestRetriedLanesLeaveOthersTheirShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewTracker(rules{unknownDelays, func(at store.Lane) bool { return at.Key != "" }}, 0)
		lane := func(prefix string, i int) store.Lane {
			return store.Lane{State: statements.StateOpen, Kind: "k", Key: fmt.Sprint(prefix, i)}
		}
		const many, most = 1000, 100
		for i := range many {
			l.Hint(lane("held", i), time.Now().Add(-time.Hour))
			l.Park(lane("held", i), fmt.Sprint("limit of ", i), 0, 0, time.Second)
		}
		time.Sleep(time.Minute)
		for i := range most / 2 {
			l.Hint(lane("new", i), time.Now())
		}
		plain := store.Lane{State: statements.StateOpen, Kind: "k", Priority: 9}
		l.Hint(plain, time.Now())
		fresh := 0
		for _, at := range l.Due(time.Now(), most) {
			if at.Key[:3] == "new" {
				fresh++
			}
		}
		if fresh != most/2 {
			t.Errorf("%d of %d lanes of new keys have places among %d", fresh, most/2, most)
		}
		l.BeginLimited(nil, 0)
		if due := l.Due(time.Now(), most); len(due) != 1 || due[0] != plain {
			t.Errorf("after a claim in vain due are %v, want the lane without limits", due)
		}
		if due := l.Due(time.Now(), most); len(due) != most {
			t.Errorf("in the turn after that %d lanes are due", len(due))
		}
		l.BeginLimited(nil, 0)
		l.Took(lane("held", 0), 1)
		if due := l.Due(time.Now(), most); len(due) != most {
			t.Errorf("after a claim that took tasks %d lanes are due", len(due))
		}
	})
}

// TestManyParkedLanesAreLookedAtSeldom: lanes that a limit holds back for an unknown time are in
// the end tried some hundred times a second together, however many they are.
func TestManyParkedLanesAreLookedAtSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewTracker(rules{unknownDelays, allLimited}, 0)
		const many = 5_000
		for i := range many {
			l.Hint(store.Lane{State: statements.StateOpen, Kind: "k", Key: fmt.Sprint(i)}, time.Now())
		}
		count := func(d time.Duration) (lanes, claims int) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				l.BeginLimited(nil, 0)
				due := l.Due(time.Now(), 256)
				for _, at := range due {
					l.Park(at, "limit of "+at.Key, 0, 0, time.Second)
				}
				if len(due) > 0 {
					lanes, claims = lanes+len(due), claims+1
					time.Sleep(5 * time.Millisecond)
				}
				at, _ := l.Next()
				time.Sleep(max(time.Until(at), 0))
			}
			return lanes, claims
		}
		if lanes, claims := count(2 * time.Minute); claims > 120*6 {
			t.Errorf("in two minutes %d claims looked at %d lanes", claims, lanes)
		}
		lanes, claims := count(4 * time.Minute)
		if perSecond := lanes / 240; perSecond < guessRate/2 || perSecond > 2*guessRate || claims > 240*5 {
			t.Errorf("%d claims in four minutes looked at %d lanes, which are %d in a second", claims, lanes, perSecond)
		}
	})
}

// TestNewKeysNeedNotWaitForHeldOnes: a key whose first task has just come has its place in the first
// claim after a sweep that found many sequences whose first task has failed and waits. The tracker does
// not count these lanes as known, however many they are, once claims have found that the others wait for them.
func TestNewKeysNeedNotWaitForHeldOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, most = 1000, 256
		l, now := NewTracker(rules{func(store.Lane) (time.Duration, bool) { return time.Hour, true }, allLimited}, 0), time.Now()
		var found []FirstTask
		for i := range many {
			held := FirstTask{Lane: store.Lane{State: statements.StateOpen, Kind: "k", Key: fmt.Sprint(i)}, Due: now.Add(-time.Minute), Anchor: 5}
			head := held
			head.Attempts, head.Due, head.Delay, head.Anchor = 1, now.Add(time.Hour), time.Hour, 3
			found = append(found, held, head)
		}
		place := func(list []FirstTask) {
			l.BeginSweep()
			swept(l, list, 0, now)
		}
		place(found)
		at := store.Lane{State: statements.StateOpen, Kind: "k", Key: "new"}
		if l.Hint(at, now); !slices.Contains(l.Due(now, most), at) {
			t.Error("the first claim leaves out the new key")
		}
		for i := 0; i < len(found); i += 2 {
			l.Hint(found[i].Lane, now)
			l.ParkBehind(found[i].Lane, "order of "+found[i].Key, found[i+1], time.Second)
		}
		if l.known != 1 {
			t.Errorf("%d lanes count as known, want the one of the new key", l.known)
		}
		for range 15 {
			place(found)
			if time.Sleep(recheck * 2 / 5); len(l.Due(time.Now(), most)) > 1 {
				t.Fatal("lanes come back although sweeps have found the tasks before them in their places")
			}
		}
	})
}
