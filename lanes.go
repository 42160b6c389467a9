package falldue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// laneTracker is what a worker knows of a queue: which lanes hold tasks, and
// when the first task of each falls due. It decides where to look and how long to
// sleep, and nothing else: the database decides what is due.
type laneTracker struct {
	mu    sync.Mutex
	lanes map[store.Lane]front
}

func newLaneTracker() *laneTracker { return &laneTracker{lanes: map[store.Lane]front{}} }

// front is where a lane begins, as far as a worker knows.
type front struct {
	// due is when its first task falls due, by the worker's monotonic clock.
	due time.Time
	// since is a moment, in the database's microseconds since 1970, before which
	// claims need not look: what was there has been claimed. A task can appear
	// before it all the same, when a transaction commits late; so every sweep
	// looks from the beginning and sets it back.
	since int64
	// hinted is when the first task falls due that this process put into the lane
	// since a claim or a sweep last began: the answer may lack it. It is zero
	// where there is none.
	hinted time.Time
	// corrupt says that somebody edited the first task to be from before 1970. It
	// seems due, and it may be that no claim ever finds it.
	corrupt bool
}

// hint notes that a lane has a task that falls due at t.
func (l *laneTracker) hint(at store.Lane, t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hintLocked(at, t)
}

func (l *laneTracker) hintLocked(at store.Lane, t time.Time) {
	f, known := l.lanes[at]
	if !known || t.Before(f.due) {
		f.due, f.since = t, 0 // it lies before what was the first task
	}
	if f.hinted.IsZero() || t.Before(f.hinted) {
		f.hinted = t
	}
	l.lanes[at] = f
}

// beginClaim is called before a claim from lanes begins, and returns since which
// moment to look in each. What is put into them from then on may be missing in
// the claim's answer.
func (l *laneTracker) beginClaim(list []store.Lane) (since []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since = make([]int64, len(list))
	for i, at := range list {
		if f, known := l.lanes[at]; known {
			since[i] = f.since
			f.hinted = time.Time{}
			l.lanes[at] = f
		}
	}
	return since
}

// beginSweep is called before a sweep begins. What is put into a lane from then
// on may be missing in the sweep's answer.
func (l *laneTracker) beginSweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, f := range l.lanes {
		f.hinted = time.Time{}
		l.lanes[at] = f
	}
}

// advance notes that a claim took the first tasks of a lane, up to one whose
// anchor was since and that fell due at due. More are due.
func (l *laneTracker) advance(at store.Lane, due time.Time, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.lanes[at]
	l.lanes[at] = front{due: due, since: max(f.since, since), corrupt: f.corrupt}
}

// emptied notes that a claim that began at start took all that was due in lanes.
// It reports whether that tells where tasks are no more: not of a lane that is
// corrupt, or that was not due.
func (l *laneTracker) emptied(list []store.Lane, start time.Time) (any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range list {
		f, ok := l.lanes[at]
		if !ok || f.due.After(start) {
			continue
		}
		any = any || !f.corrupt
		delete(l.lanes, at)
		if !f.hinted.IsZero() {
			l.hintLocked(at, f.hinted)
		}
	}
	return any
}

// swept replaces what is known by what a sweep that began at start has found.
// What was hinted since then may be newer.
func (l *laneTracker) swept(found map[store.Lane]front, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.lanes
	l.lanes = found
	for at, f := range known {
		if _, ok := found[at]; !ok && f.due.After(start) {
			found[at] = f
		} else if !f.hinted.IsZero() {
			l.hintLocked(at, f.hinted)
		}
	}
}

// due lists up to most lanes with something due, in the order in which to claim
// from them: by priority, then whose first task has been due for the longest. It
// keeps no more than it returns: a queue may have many thousand due lanes.
func (l *laneTracker) due(now time.Time, most int) []store.Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []store.Lane
	cut := false // list[:most] is sorted: nothing behind its last is among the first most
	for at, f := range l.lanes {
		if f.due.After(now) || cut && l.compare(at, list[most-1]) >= 0 {
			continue
		}
		if list = append(list, at); len(list) == 2*most {
			slices.SortFunc(list, l.compare)
			list, cut = list[:most], true
		}
	}
	slices.SortFunc(list, l.compare)
	return list[:min(len(list), most)]
}

// compare compares known lanes by when to claim from them.
func (l *laneTracker) compare(a, b store.Lane) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), l.lanes[a].due.Compare(l.lanes[b].due), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Attempts, b.Attempts))
}

// next is when the first lane falls due, and false when none is known.
func (l *laneTracker) next() (first time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.lanes {
		if !ok || f.due.Before(first) {
			first, ok = f.due, true
		}
	}
	return first, ok
}
