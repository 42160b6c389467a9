package lanes

import (
	"cmp"
	"slices"
	"time"
)

// A queue may have a lane for each of a million keys. The tracker keeps at most maxWaiting lanes with a known task,
// in addition to parked lanes and the lanes that these wait for. Later sweeps find dropped lanes again.
const (
	maxWaiting = 40_000
	// fullWaiting is the number of due lanes that are enough for now.
	fullWaiting = 20_000
)

// Full reports whether enough lanes are due, so that a sweep need not find more for now.
func (l *Tracker) Full(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := 0
	for _, w := range l.waiting {
		due += w.dueCount(now)
	}
	return due >= fullWaiting
}

// dueIn returns the number of due lanes in the subtree of a heap at an index.
func dueIn(h laneHeap, at int, now time.Time) int {
	if at >= len(h) || h[at].Due.After(now) { // the lanes below it fall due later
		return 0
	}
	return 1 + dueIn(h, 2*at+1, now) + dueIn(h, 2*at+2, now)
}

// expendable yields the lanes that trim may drop.
func (l *Tracker) expendable(yield func(*laneState) bool) {
	for _, w := range l.waiting {
		for f := range w.lanes {
			if f.awaited == 0 && !yield(f) {
				return
			}
		}
	}
}

// trim drops half of the lanes if there are too many: first the lanes that fall due latest, then the due lanes from
// which claims take last.
func (l *Tracker) trim() {
	if l.known <= maxWaiting {
		return
	}
	now := time.Now()
	rank := func(f *laneState) (later time.Duration, priority int) {
		if wait := f.Due.Sub(now); wait > 0 {
			return wait, 0
		}
		return 0, f.Priority
	}
	list := slices.SortedFunc(l.expendable, func(f, g *laneState) int {
		later, priority := rank(f)
		laterOther, priorityOther := rank(g)
		return cmp.Or(cmp.Compare(later, laterOther), cmp.Compare(priority, priorityOther), f.Due.Compare(g.Due))
	})
	for _, f := range list[maxWaiting/2:] {
		if l.forgotten.IsZero() || f.Due.Before(l.forgotten) {
			l.forgotten = f.Due
		}
		l.remove(f)
		delete(l.Lanes, f.Lane)
	}
}

// Len returns how many lanes are known, including those that are empty.
func (l *Tracker) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.Lanes)
}
