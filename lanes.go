package falldue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// laneTracker has what a worker knows of a queue: which lanes hold tasks, and when
// the first task of each falls due. It only decides where to look and how long to
// sleep. The database decides what is due.
type laneTracker struct {
	mu    sync.Mutex
	lanes map[store.Lane]knownLane
	// missed has the anchors of first tasks that seemed due and that a claim did not
	// find, such as those whose rows somebody has locked.
	missed map[store.Lane]int64
}

func newLaneTracker() *laneTracker {
	return &laneTracker{lanes: map[store.Lane]knownLane{}, missed: map[store.Lane]int64{}}
}

// knownLane is what a worker knows of a lane.
type knownLane struct {
	// due is when the first task falls due, by the worker's monotonic clock.
	due time.Time
	// since is the anchor from which claims look, in the database's microseconds
	// since 1970. All tasks before it have been claimed. A task can still appear
	// before it when a transaction commits late, so every sweep looks from the
	// beginning of the lane and sets since back.
	since int64
	// hinted is when the first task falls due that this process has put into the
	// lane since a claim or a sweep last began, whose answer may lack the task. It
	// is zero if there is none.
	hinted time.Time
	// unclaimable means that the first task seems due, but perhaps no claim finds it:
	// somebody has locked its row, or set its anchor to a time before 1970.
	unclaimable bool
}

// hint records that a lane has a task that falls due at t.
func (l *laneTracker) hint(at store.Lane, t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hintLocked(at, t)
}

func (l *laneTracker) hintLocked(at store.Lane, t time.Time) {
	f, known := l.lanes[at]
	if !known || t.Before(f.due) {
		f.due, f.since = t, 0 // the new first task, perhaps before since
	}
	if f.hinted.IsZero() || t.Before(f.hinted) {
		f.hinted = t
	}
	l.lanes[at] = f
}

// beginClaim is called before a claim from lanes begins, and returns the anchor
// from which to look in each. Tasks put into them from then on may be missing in
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

// beginSweep is called before a sweep begins. Tasks put into a lane from then on
// may be missing in the sweep's answer.
func (l *laneTracker) beginSweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, f := range l.lanes {
		f.hinted = time.Time{}
		l.lanes[at] = f
	}
}

// advance records that a claim took the first tasks of a lane, up to a task whose
// anchor was since and that fell due at due. The lane is still due.
func (l *laneTracker) advance(at store.Lane, due time.Time, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.lanes[at]
	l.lanes[at] = knownLane{due: due, since: max(f.since, since), unclaimable: f.unclaimable}
}

// emptied records that a claim that began at start took all due tasks of lanes that it
// could. It took some from those in took. It reports whether a sweep may find more soon.
func (l *laneTracker) emptied(list []store.Lane, took map[store.Lane]bool, start time.Time) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range list {
		f, ok := l.lanes[at]
		if !ok || f.due.After(start) {
			continue
		}
		more = more || !f.unclaimable
		delete(l.lanes, at)
		if !took[at] && f.since != 0 {
			l.missed[at] = f.since
		}
		if !f.hinted.IsZero() {
			l.hintLocked(at, f.hinted)
		}
	}
	return more
}

// swept replaces what is known by what a sweep that began at start has found. It
// keeps hints given since then, which may be newer.
func (l *laneTracker) swept(found map[store.Lane]knownLane, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, anchor := range l.missed {
		if f, ok := found[at]; ok && f.since == anchor {
			f.unclaimable = true
			found[at] = f
		} else {
			delete(l.missed, at)
		}
	}
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

// due lists up to most lanes that are due, in the order in which to claim from
// them: by priority, then by how long the first task has been due. It keeps no more
// lanes than it returns, since many thousands may be due.
func (l *laneTracker) due(now time.Time, most int) []store.Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []store.Lane
	cut := false // list[:most] is sorted, so lanes behind its last one can be skipped
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

// compare compares known lanes by the order in which to claim from them.
func (l *laneTracker) compare(a, b store.Lane) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), l.lanes[a].due.Compare(l.lanes[b].due), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Attempts, b.Attempts))
}

// next returns when the first lane falls due, and false if no lane is known.
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
