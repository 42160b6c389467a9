package falldue

import (
	"container/heap"
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// laneTracker has what a worker knows of a queue: which lanes hold tasks, when the
// first task of each falls due, and up to where each has been claimed. It only decides
// where to look and how long to sleep. The database decides what is due.
type laneTracker struct {
	mu    sync.Mutex
	lanes map[store.Lane]*knownLane
	// waiting has the lanes in which a task is known, by their priorities.
	waiting    map[int]*laneHeap
	priorities []int // the keys of waiting, sorted
	// empty has the lanes in which no task is known, the last emptied first. Their
	// tasks come back: without the anchor up to which a lane has been claimed, every
	// claim of a task that comes into it would read the index entries of all tasks
	// that were in it while some transaction is open.
	empty *list.List
	// missed has the anchors of first tasks that seemed due and that a claim did not
	// find, such as those whose rows somebody has locked.
	missed map[store.Lane]int64
	sweeps int // how many have begun
	// held has the lanes that limits hold back, by the limits' names, and retries when to
	// try them again.
	held       map[string]*heldLanes
	retries    placeHeap[*heldLanes]
	freedSince map[string]bool // limits of which permits were freed since the last claim began
	// delayOf returns the delay of a lane whose tasks have failed, and false if it is not known.
	delayOf func(store.Lane) (time.Duration, bool)
}

// maxEmpty is the greatest number of empty lanes that a worker remembers.
const maxEmpty = 1000

func newLaneTracker() *laneTracker {
	return &laneTracker{lanes: map[store.Lane]*knownLane{}, waiting: map[int]*laneHeap{}, empty: list.New(), missed: map[store.Lane]int64{}, held: map[string]*heldLanes{}, freedSince: map[string]bool{}, delayOf: func(store.Lane) (time.Duration, bool) { return 0, false }}
}

// lane returns what is known of a lane, which the caller sets.
func (l *laneTracker) lane(at store.Lane) *knownLane {
	f := l.lanes[at]
	if f == nil {
		f = &knownLane{Lane: at, place: nowhere}
		l.lanes[at] = f
	}
	return f
}

// set records when the first task of a lane falls due and from where claims look.
func (l *laneTracker) set(f *knownLane, due time.Time, since int64) {
	f.due, f.since, f.anchor = due, since, 0
	if f.memory != nil {
		l.empty.Remove(f.memory)
		f.memory = nil
	}
	switch {
	case f.place == nowhere:
		l.push(f)
	case f.held != nil:
		heap.Fix(&f.held.lanes, f.place)
	default:
		heap.Fix(l.waiting[f.Priority], f.place)
	}
}

// push adds a lane to those of its priority.
func (l *laneTracker) push(f *knownLane) {
	h := l.waiting[f.Priority]
	if h == nil {
		h = &laneHeap{}
		l.waiting[f.Priority] = h
		i, _ := slices.BinarySearch(l.priorities, f.Priority)
		l.priorities = slices.Insert(l.priorities, i, f.Priority)
	}
	heap.Push(h, f)
}

// remove removes a lane from those of its priority, or from those of its limit.
func (l *laneTracker) remove(f *knownLane) {
	if held := f.held; held != nil {
		heap.Remove(&held.lanes, f.place)
		if f.held = nil; len(held.lanes) == 0 {
			l.dropHeld(held)
		}
		return
	}
	h := l.waiting[f.Priority]
	if heap.Remove(h, f.place); h.Len() == 0 {
		delete(l.waiting, f.Priority)
		i, _ := slices.BinarySearch(l.priorities, f.Priority)
		l.priorities = slices.Delete(l.priorities, i, i+1)
	}
}

// setEmpty records that no task of a lane is known.
func (l *laneTracker) setEmpty(f *knownLane) {
	f.due, f.since, f.anchor, f.hinted, f.unclaimable = time.Time{}, f.bound(), 0, time.Time{}, false
	if f.place != nowhere {
		l.remove(f)
	}
	if f.memory == nil {
		f.memory = l.empty.PushFront(f)
	} else {
		l.empty.MoveToFront(f.memory)
	}
	if l.empty.Len() > maxEmpty {
		oldest, _ := l.empty.Remove(l.empty.Back()).(*knownLane)
		delete(l.lanes, oldest.Lane)
	}
}

// hint records that a lane has a task that falls due at t.
func (l *laneTracker) hint(at store.Lane, t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.lane(at)
	if time.Since(t) > commitMargin { // its anchor may be anywhere, such as with RunAt
		f.taken = 0
	}
	l.hintLocked(f, t)
}

func (l *laneTracker) hintLocked(f *knownLane, t time.Time) {
	if f.due.IsZero() || t.Before(f.due) {
		l.set(f, t, f.bound()) // the new first task, perhaps before since
		l.noteDelay(f)
	}
	if f.hinted.IsZero() || t.Before(f.hinted) {
		f.hinted = t
	}
}

// beginClaim is called before a claim from lanes begins, and returns the anchor
// from which to look in each. Tasks put into them from then on may be missing in
// the claim's answer.
func (l *laneTracker) beginClaim(list []store.Lane) (since []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since = make([]int64, len(list))
	for i, at := range list {
		if f := l.lanes[at]; f != nil {
			since[i] = f.since
			f.hinted = time.Time{}
		}
	}
	return since
}

// beginSweep is called before a sweep begins. Tasks put into a lane from then on
// may be missing in the sweep's answer.
func (l *laneTracker) beginSweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweeps++
	for _, f := range l.lanes {
		f.hinted = time.Time{}
	}
}

// advance records that a claim took the first tasks of a lane, up to a task whose
// anchor was since and that fell due at due. The lane is still due.
func (l *laneTracker) advance(at store.Lane, due time.Time, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.lane(at)
	f.taken, f.hinted, f.claimed, f.served = max(f.taken, since), time.Time{}, l.sweeps, time.Now()
	l.set(f, due, max(f.since, since))
	l.noteDelay(f)
}

// noteDelay records which part of a lane's due time its policy has given.
func (l *laneTracker) noteDelay(f *knownLane) {
	if f.hasDelay() {
		f.delay, _ = l.delayOf(f.Lane)
	}
}

// retime makes lanes due by the policies that hold now.
func (l *laneTracker) retime() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.lanes {
		if !f.hasDelay() || f.due.IsZero() && f.hinted.IsZero() {
			continue
		}
		delay, known := l.delayOf(f.Lane)
		if !known {
			continue
		}
		longer := delay - f.delay
		if f.delay = delay; !f.due.IsZero() {
			f.due = f.due.Add(longer)
		}
		if !f.hinted.IsZero() {
			f.hinted = f.hinted.Add(longer)
		}
	}
	for _, h := range l.waiting {
		heap.Init(h)
	}
	for _, h := range l.held {
		heap.Init(&h.lanes)
	}
}

// emptied records that a claim that began at start took all due tasks of lanes that it
// could. The last task that it took from a lane had the anchor in took. It reports
// whether a sweep may find more soon.
func (l *laneTracker) emptied(list []store.Lane, took map[store.Lane]int64, start time.Time) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range list {
		f := l.lanes[at]
		if f == nil || f.due.IsZero() || f.due.After(start) {
			continue
		}
		more = more || !f.unclaimable
		last, ok := took[at]
		if f.taken = max(f.taken, last); !ok && f.anchor != 0 {
			l.missed[at] = f.anchor
		}
		hinted := f.hinted
		f.claimed = l.sweeps
		if l.setEmpty(f); !hinted.IsZero() {
			l.hintLocked(f, hinted)
		}
	}
	return more
}

// swept replaces what is known by what the sweep that began last has found. It keeps
// what hints and claims have changed since then, which may be newer. A sweep that began at start and found
// nothing in a lane has shown that it was empty at now, by the database's clock. A now
// of 0 is unknown.
func (l *laneTracker) swept(found []firstTask, now int64, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	anchors := make(map[store.Lane]int64, len(found))
	for _, t := range found {
		anchors[t.Lane] = t.anchor
	}
	maps.DeleteFunc(l.missed, func(at store.Lane, anchor int64) bool { return anchors[at] != anchor })
	for at, f := range l.lanes {
		if _, ok := anchors[at]; ok || f.claimed == l.sweeps || f.due.After(start) {
			continue
		}
		f.taken = max(f.taken, now)
		if f.memory != nil {
			f.since = f.bound()
			continue
		}
		hinted := f.hinted
		if l.setEmpty(f); !hinted.IsZero() {
			l.hintLocked(f, hinted)
		}
	}
	for _, t := range found {
		if t.due.IsZero() {
			continue
		}
		f := l.lane(t.Lane)
		if f.claimed != l.sweeps || t.precedes(f) {
			l.find(f, t)
		}
		if !f.hinted.IsZero() {
			l.hintLocked(f, f.hinted)
		}
	}
}

// found records what a look has found, beside what is known.
func (l *laneTracker) found(found []firstTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range found {
		if t.due.IsZero() {
			continue
		}
		if f := l.lane(t.Lane); t.precedes(f) {
			l.find(f, t)
		}
	}
}

// dueOf returns when the first task of a lane falls due, if that is the task with an
// anchor, and the part of that which its policy gives. Otherwise the time is zero.
func (l *laneTracker) dueOf(at store.Lane, anchor int64) (time.Time, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.lanes[at]; f != nil && f.anchor == anchor {
		return f.due, f.delay
	}
	return time.Time{}, 0
}

// find records the first task of a lane.
func (l *laneTracker) find(f *knownLane, t firstTask) {
	anchor, missed := l.missed[t.Lane]
	f.unclaimable = t.unclaimable || missed && anchor == t.anchor
	f.taken = max(f.taken, min(t.anchor, t.now))
	l.set(f, t.due, t.anchor)
	f.anchor, f.delay = t.anchor, t.delay
}

// remembered lists up to most lanes in which no task is known, the last emptied first,
// with the anchor from which to look in each.
func (l *laneTracker) remembered(most int) (sources []store.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.empty.Front(); e != nil && len(sources) < most; e = e.Next() {
		f, _ := e.Value.(*knownLane)
		sources = append(sources, store.Source{Lane: f.Lane, Since: f.since})
	}
	return sources
}

// due lists up to most lanes that are due, in the order in which to claim from
// them: by priority, then by how long the first task has been due. Lanes with keys of one
// kind take turns.
func (l *laneTracker) due(now time.Time, most int) (due []store.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseDue(now)
	for _, priority := range l.priorities {
		h, first := l.waiting[priority], len(due)
		for len(due) < most && h.Len() > 0 && !(*h)[0].due.After(now) {
			f, _ := heap.Pop(h).(*knownLane)
			due = append(due, f.Lane)
		}
		for _, at := range due[first:] {
			heap.Push(h, l.lanes[at])
		}
		l.takeTurns(due[first:])
		if len(due) == most {
			break
		}
	}
	return due
}

// takeTurns sorts those lanes of a list that have keys and are of one kind, in the places that
// they have together: the one comes first that has waited longest since a claim took tasks
// from it, or since its first task fell due if that was later.
func (l *laneTracker) takeTurns(list []store.Lane) {
	var places map[string][]int // by kind
	for i, at := range list {
		if at.Key == "" {
			continue
		}
		if places == nil {
			places = map[string][]int{}
		}
		places[at.Kind] = append(places[at.Kind], i)
	}
	for _, at := range places {
		lanes := make([]store.Lane, len(at))
		for n, i := range at {
			lanes[n] = list[i]
		}
		slices.SortStableFunc(lanes, func(a, b store.Lane) int { return l.lanes[a].turn().Compare(l.lanes[b].turn()) })
		for n, i := range at {
			list[i] = lanes[n]
		}
	}
}

// next returns when the first lane falls due, and false if no task is known.
func (l *laneTracker) next() (first time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.waiting {
		if due := (*h)[0].due; !ok || due.Before(first) {
			first, ok = due, true
		}
	}
	if len(l.retries) > 0 && (!ok || l.retries[0].retry.Before(first)) {
		first, ok = l.retries[0].retry, true
	}
	return first, ok
}
