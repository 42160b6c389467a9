// Package lanes tracks which groups of tasks with equal delay wait in a queue, and when the first
// task of each falls due.
package lanes

import (
	"container/heap"
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Tracker has a worker's knowledge of a queue: which lanes have tasks, when the
// first task of each falls due, and up to where each has been claimed. The tracker only
// decides where to search and how long to sleep. The database decides which tasks are due.
type Tracker struct {
	mu    sync.Mutex
	Lanes map[store.Lane]*laneState
	// waiting has the lanes with a known task, by priority, except parked lanes.
	waiting    map[int]*classes
	priorities []int // the keys of waiting, sorted
	known      int   // lanes in waiting that no parked lane waits for
	// empty has the lanes in which no task is known, the last emptied first. The tracker
	// keeps them because of claimedUpTo: without it, a claim of the next task of a lane would
	// read the index entries of all earlier tasks, which remain while some transaction is open.
	empty *list.List
	// missed has the anchors of first tasks that seemed due and that a claim did not
	// find, such as tasks with locked rows.
	missed map[store.Lane]missedTask
	sweeps int // how many have begun
	// forgotten is the earliest due time in the lanes that trim has dropped since a sweep last began, or zero.
	forgotten time.Time
	// parked has the lanes that limits hold back, by the limits' names. retries has them in the
	// order of their next tries.
	parked     map[string]*parkedLanes
	retries    indexedHeap[*parkedLanes]
	behind     int             // how many parked lanes wait for a task that is due later
	guessed    int             // how many others are parked until a guessed time
	claiming   map[string]bool // limits of the claims under way: true if permits were freed since the claim began
	underClaim int             // how many lanes these claims have
	inVain     bool            // the last claim under limits took no task
	start      time.Time
	rules      Rules
	lowShare   int // the percentage of tasks that each priority leaves to later ones
}

// Rules are the delays and limits of lanes.
type Rules interface {
	// DelayOf returns the delay of a lane whose tasks have failed, and false if it is not known.
	DelayOf(store.Lane) (time.Duration, bool)
	// Limited reports whether the tasks of a lane have limits.
	Limited(store.Lane) bool
	// LimitsOf returns the limits of the tasks of a lane.
	LimitsOf(store.Lane) []store.Limit
	// Ordered reports whether the tasks of a lane are in a sequence.
	Ordered(store.Lane) bool
	// Weight returns the weight of the lane's turn: 1 to 1,000.
	Weight(store.Lane) int
}

// maxEmpty is the greatest number of empty lanes that a worker remembers.
const maxEmpty = 1000

// missedTask is the anchor of a task that a claim did not find, and the number of the last sweep that found the task.
type missedTask struct {
	anchor int64
	sweep  int
}

// NewTracker returns a tracker that knows no lanes. Each priority leaves a percentage of tasks, lowShare, to later ones.
func NewTracker(rules Rules, lowShare int) *Tracker {
	return &Tracker{
		Lanes: map[store.Lane]*laneState{}, waiting: map[int]*classes{}, empty: list.New(), missed: map[store.Lane]missedTask{},
		parked: map[string]*parkedLanes{}, claiming: map[string]bool{}, start: time.Now(), rules: rules, lowShare: lowShare,
	}
}

// stateOf returns the state of a lane, which it adds if the lane is not known.
func (l *Tracker) stateOf(at store.Lane) *laneState {
	f := l.Lanes[at]
	if f == nil {
		f = &laneState{Lane: at, heapIndex: notInHeap, limited: l.rules.Limited(at)}
		l.Lanes[at] = f
	}
	return f
}

// set records when the first task of a lane falls due, and the anchor from which claims search.
func (l *Tracker) set(f *laneState, due time.Time, since int64) {
	f.Due, f.scanFrom, f.firstAnchor = due, since, 0
	if f.emptyElem != nil {
		l.empty.Remove(f.emptyElem)
		f.emptyElem = nil
	}
	switch {
	case f.heapIndex == notInHeap:
		l.push(f)
	case f.parked != nil:
		heap.Fix(&f.parked.lanes, f.heapIndex)
	default:
		f.in.fix(f)
	}
}

// push adds a lane to the lanes with its priority.
func (l *Tracker) push(f *laneState) {
	w := l.waiting[f.Priority]
	if w == nil {
		w = &classes{}
		l.waiting[f.Priority] = w
		i, _ := slices.BinarySearch(l.priorities, f.Priority)
		l.priorities = slices.Insert(l.priorities, i, f.Priority)
	}
	w.push(f)
	l.count(f, 1)
}

// count adds by to the number of known lanes if the lane is one of them.
func (l *Tracker) count(f *laneState, by int) {
	if f.heapIndex != notInHeap && f.parked == nil && f.awaited == 0 {
		l.known += by
	}
}

// remove removes a lane from the lanes with its priority, or with its limit.
func (l *Tracker) remove(f *laneState) {
	if held := f.parked; held != nil {
		heap.Remove(&held.lanes, f.heapIndex)
		if l.unpark(f); len(held.lanes) == 0 {
			l.dropParked(held)
		}
		return
	}
	l.count(f, -1)
	if f.in.remove(f); f.in.empty() {
		delete(l.waiting, f.Priority)
		i, _ := slices.BinarySearch(l.priorities, f.Priority)
		l.priorities = slices.Delete(l.priorities, i, i+1)
	}
}

// setEmpty records that no task of a lane is known.
func (l *Tracker) setEmpty(f *laneState) {
	f.Due, f.scanFrom, f.firstAnchor, f.hinted, f.unclaimable, f.retried, f.more = time.Time{}, f.bound(), 0, time.Time{}, false, false, false
	if f.heapIndex != notInHeap {
		l.remove(f)
	}
	if f.emptyElem == nil {
		f.emptyElem = l.empty.PushFront(f)
	} else {
		l.empty.MoveToFront(f.emptyElem)
	}
	if l.empty.Len() > maxEmpty {
		oldest, _ := l.empty.Remove(l.empty.Back()).(*laneState)
		delete(l.Lanes, oldest.Lane)
	}
}

// Hint records that a lane has a task that falls due at t.
func (l *Tracker) Hint(at store.Lane, t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.stateOf(at)
	if time.Since(t) > commitMargin { // its anchor may be anywhere, such as with RunAt
		f.claimedUpTo = 0
	}
	l.hintLocked(f, t)
	l.trim()
}

func (l *Tracker) hintLocked(f *laneState, t time.Time) {
	if f.Due.IsZero() || t.Before(f.Due) {
		l.set(f, t, f.bound()) // the new first task may have an earlier anchor
		l.noteDelay(f)
	}
	if f.hinted.IsZero() || t.Before(f.hinted) {
		f.hinted = t
	}
}

// BeginClaim is called before a claim from lanes begins. It returns the lanes as sources of the claim. The claim's
// answer may lack tasks that come into the lanes from then on.
func (l *Tracker) BeginClaim(list []store.Lane) []store.Source {
	sources := make([]store.Source, len(list))
	for i, at := range list {
		sources[i].Lane, sources[i].Weight = at, l.rules.Weight(at)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, at := range list {
		if f := l.Lanes[at]; f != nil {
			sources[i].Since, sources[i].More = f.scanFrom, f.more
			f.weight = sources[i].Weight
			f.hinted = time.Time{}
		}
	}
	return sources
}

// BeginSweep is called before a sweep begins. The sweep's answer may lack tasks that come into a
// lane from then on.
func (l *Tracker) BeginSweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweeps++
	l.forgotten = time.Time{}
	for _, f := range l.Lanes {
		f.hinted = time.Time{}
	}
}

// Advance records that a claim took the first tasks of a lane, which is still due. The last
// task that the claim took had the anchor since, and fell due at due.
func (l *Tracker) Advance(at store.Lane, due time.Time, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.stateOf(at)
	f.claimedUpTo, f.hinted, f.claimed, f.more = max(f.claimedUpTo, since), time.Time{}, l.sweeps, true
	l.set(f, due, max(f.scanFrom, since))
	l.noteDelay(f)
}

// noteDelay records the policy's part of the wait until a lane is due.
func (l *Tracker) noteDelay(f *laneState) {
	if f.hasDelay() {
		f.delay, _ = l.rules.DelayOf(f.Lane)
	}
}

// Retime makes lanes due by the policies that are in effect now.
func (l *Tracker) Retime() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.Lanes {
		if !f.hasDelay() || f.Due.IsZero() && f.hinted.IsZero() {
			continue
		}
		delay, known := l.rules.DelayOf(f.Lane)
		if !known {
			continue
		}
		longer := delay - f.delay
		if f.delay = delay; !f.Due.IsZero() {
			f.Due = f.Due.Add(longer)
		}
		if !f.hinted.IsZero() {
			f.hinted = f.hinted.Add(longer)
		}
	}
	for _, w := range l.waiting {
		w.retime()
	}
	for _, h := range l.parked {
		heap.Init(&h.lanes)
	}
	l.retimeParked()
}

// Emptied records that a claim, which began at start, took as many due tasks of lanes as it could.
// took has the anchor of the last task from each lane. Emptied reports whether a sweep may find more
// soon.
func (l *Tracker) Emptied(list []store.Lane, took map[store.Lane]int64, start time.Time) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range list {
		f := l.Lanes[at]
		if f == nil || f.Due.IsZero() || f.Due.After(start) {
			continue
		}
		more = more || !f.unclaimable
		last, ok := took[at]
		if f.claimedUpTo = max(f.claimedUpTo, last); !ok && f.firstAnchor != 0 {
			l.missed[at] = missedTask{f.firstAnchor, l.sweeps}
		}
		hinted := f.hinted
		f.claimed = l.sweeps
		if l.setEmpty(f); !hinted.IsZero() {
			l.hintLocked(f, hinted)
		}
	}
	return more
}

// SweptPage replaces the knowledge of lanes by the result of a part of the current sweep. Changes by hints and claims
// since the beginning of the sweep stay, since they may be newer.
func (l *Tracker) SweptPage(found []FirstTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for i, t := range found {
		if missed, ok := l.missed[t.Lane]; ok && missed.anchor == t.Anchor {
			l.missed[t.Lane] = missedTask{t.Anchor, l.sweeps}
		}
		f := l.Lanes[t.Lane]
		if f == nil && t.Due.IsZero() {
			continue
		}
		isNew := f == nil
		f = l.stateOf(t.Lane)
		if f.swept, f.sweptAnchor = l.sweeps, t.Anchor; t.Due.IsZero() {
			continue
		}
		if isNew && i+1 < len(found) {
			f.retried = l.seemsHeld(t, found[i+1], now)
		}
		if f.claimed != l.sweeps || t.precedes(f) {
			l.find(f, t)
		}
		if !f.hinted.IsZero() {
			l.hintLocked(f, f.hinted)
		}
	}
	l.trim()
}

// EndSweep records that the sweep that began at start has found all lanes. Other lanes were empty at now, by the
// database's clock; 0 is an unknown time. EndSweep returns the earliest due time in the lanes that were dropped since
// the sweep began, or the zero time.
func (l *Tracker) EndSweep(now int64, start time.Time) (forgotten time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.missed, func(_ store.Lane, missed missedTask) bool { return missed.sweep != l.sweeps })
	for _, f := range l.Lanes {
		if f.swept == l.sweeps || f.claimed == l.sweeps || f.Due.After(start) {
			continue
		}
		f.claimedUpTo = max(f.claimedUpTo, now)
		if f.emptyElem != nil {
			f.scanFrom = f.bound()
			continue
		}
		hinted := f.hinted
		if l.setEmpty(f); !hinted.IsZero() {
			l.hintLocked(f, hinted)
		}
	}
	l.releaseMoved()
	return l.forgotten
}

// Found records the first tasks that a recheck found. Other lanes stay as they are.
func (l *Tracker) Found(found []FirstTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range found {
		if t.Due.IsZero() {
			continue
		}
		if f := l.stateOf(t.Lane); t.precedes(f) {
			l.find(f, t)
		}
	}
	l.trim()
}

// DueOf returns when the first task of a lane falls due, and the policy's part of that wait. The time
// is zero unless the first task has the anchor.
func (l *Tracker) DueOf(at store.Lane, anchor int64) (time.Time, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.Lanes[at]; f != nil && f.firstAnchor == anchor {
		return f.Due, f.delay
	}
	return time.Time{}, 0
}

// find records the first task of a lane.
func (l *Tracker) find(f *laneState, t FirstTask) {
	missed, ok := l.missed[t.Lane]
	f.unclaimable = t.Unclaimable || ok && missed.anchor == t.Anchor
	f.claimedUpTo = max(f.claimedUpTo, min(t.Anchor, t.Now))
	l.set(f, t.Due, t.Anchor)
	f.firstAnchor, f.delay = t.Anchor, t.Delay
}

// Remembered lists up to most lanes without a known task, the last emptied first, each with the
// anchor from which to search the lane.
func (l *Tracker) Remembered(most int) (sources []store.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.empty.Front(); e != nil && len(sources) < most; e = e.Next() {
		f, _ := e.Value.(*laneState)
		sources = append(sources, store.Source{Lane: f.Lane, Since: f.scanFrom})
	}
	return sources
}

// Due lists up to most lanes that are due, in the order in which to claim from them: by priority, and then in turns.
// Within a turn, lanes that have waited longest come first.
//
// Either all lanes of the list have limits or none has, since claims under limits are separate statements. Lanes of a
// later priority then wait for all due lanes of the earlier ones. After a claim under limits that took no task, the
// lanes without limits come next. While claims are under way, the list may be longer by their lanes.
func (l *Tracker) Due(now time.Time, most int) (due []store.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseDue(now, most)
	most += l.underClaim // which the next claim leaves out
	if l.inVain {
		l.inVain = false
		for _, priority := range l.inOrder(now) {
			w := l.waiting[priority]
			w.admit(now)
			due = collect(due, w.due(most-len(due), false))
		}
		if len(due) > 0 {
			return due
		}
	}
	limited, chosen := false, false
	for _, priority := range l.inOrder(now) {
		w := l.waiting[priority]
		w.admit(now)
		next := w.next()
		if next == nil {
			continue
		}
		if !chosen {
			limited, chosen = next.lanes[0].limited, true
		}
		due = collect(due, w.due(most-len(due), limited))
		if len(due) == most || w.anyDue(!limited) {
			break
		}
	}
	return due
}

// collect appends lanes to a list.
func collect(due []store.Lane, lanes []*laneState) []store.Lane {
	for _, f := range lanes {
		due = append(due, f.Lane)
	}
	return due
}

// Next returns when the first lane falls due, and false if no task is known.
func (l *Tracker) Next() (first time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.waiting {
		if at, waits := w.first(); waits && (!ok || at.Before(first)) {
			first, ok = at, true
		}
	}
	if len(l.retries) > 0 && (!ok || l.retries[0].retry.Before(first)) {
		first, ok = l.retries[0].retry, true
	}
	return first, ok
}
