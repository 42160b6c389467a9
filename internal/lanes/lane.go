package lanes

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// laneState is a worker's knowledge of a lane. Anchors are in the database's microseconds since 1970.
type laneState struct {
	store.Lane
	// Due is when the first task falls due, by the worker's monotonic clock. It is
	// zero if no task is known.
	Due time.Time
	// delay is the policy's part of the wait until Due.
	delay time.Duration
	// scanFrom is the anchor from which claims look.
	scanFrom int64
	// firstAnchor is the anchor of the first task, if a sweep or a recheck found the task, or 0.
	firstAnchor int64
	// claimedUpTo is the anchor up to which all tasks have been claimed. A task can still
	// appear before it when a transaction commits late, so every sweep reads the lane
	// from its beginning.
	claimedUpTo int64
	// hinted is the earliest due time of the tasks that this process has stored in the lane
	// since a claim or a sweep last began, or zero. The answer of that claim or sweep may lack
	// these tasks.
	hinted time.Time
	// claimed is the number of sweeps that had begun when a claim last changed this state. The
	// answer of the last of these sweeps may be older than the state.
	claimed int
	// swept is the number of the last sweep that found the lane, and sweptAnchor the anchor of the
	// first task that it found there.
	swept       int
	sweptAnchor int64
	// Unclaimable means that the first task seems due, but perhaps no claim finds the task:
	// a transaction locks its row, or its anchor is before 1970.
	unclaimable bool

	limited   bool          // its tasks have limits
	retried   bool          // the last claim was in vain, and nothing is known to have changed since
	class     class         // of the lane, while the lane is in the heap of its priority
	served    time.Time     // when a claim last took some of the tasks and left others
	heapIndex int           // in the heap of its priority and class, or of its limit
	parked    *parkedLanes  // all lanes that the same limit holds back, or nil
	wait      time.Duration // the last guess of how long a limit holds the lane back
	guessed   bool          // the lane is parked until a guessed time
	heldUntil time.Time     // when limits are last known to have held tasks of the lane back; zero if they never were
	behind    *awaitedTask  // while the lane is parked behind a task that is due later: that task
	awaited   int           // how many parked lanes wait for the first task of this lane
	emptyElem *list.Element // in the list of empty lanes, or nil
}

// waitingSince returns since when the lane has waited among the lanes of its kind: since a claim last
// took tasks of it, or since its first task fell due if that was later.
func (f *laneState) waitingSince() time.Time {
	if f.served.After(f.Due) {
		return f.served
	}
	return f.Due
}

// hasDelay reports whether the policy of the lane's tasks delays them.
func (f *laneState) hasDelay() bool { return f.Attempts > 0 && f.State == statements.StateOpen }

// commitMargin is how much later than a task with a later anchor a task may be
// committed and still be found by the next claim from its lane. A task that is
// committed later than that is found by the next sweep.
const commitMargin = 50 * time.Millisecond

// bound returns the anchor from which claims search for new tasks of the lane.
func (f *laneState) bound() int64 { return max(f.claimedUpTo-commitMargin.Microseconds(), 0) }

// FirstTask is the first task of a lane, as a sweep or a recheck found it. Due is zero while the
// policy of the lane is not known.
type FirstTask struct {
	store.Lane
	Due         time.Time
	Delay       time.Duration // the policy's part of the wait until Due
	Anchor, Now int64         // by the database's clock
	Unclaimable bool
}

// precedes reports whether the task falls due before the known tasks of its lane.
func (t FirstTask) precedes(f *laneState) bool { return f.Due.IsZero() || t.Due.Before(f.Due) }

// comesBefore reports whether claims take from the lane before they take from another lane: lower
// priority numbers come first, then earlier due times.
func (f *laneState) comesBefore(g *laneState) bool {
	return cmp.Or(cmp.Compare(f.Priority, g.Priority), f.Due.Compare(g.Due), cmp.Compare(f.Kind, g.Kind), cmp.Compare(f.Attempts, g.Attempts)) < 0
}

func (f *laneState) at() *int { return &f.heapIndex }

// laneHeap holds lanes in which a task is known.
type laneHeap = indexedHeap[*laneState]

// class sorts the lanes of a priority, so that each class has its share of the claims.
type class int

const (
	free    class = iota // no limit applies
	limited              // the limits may admit tasks
	retried              // a limit held it back when it was last tried, and may still do so
	numClasses
)

func (f *laneState) classNow() class {
	switch {
	case !f.limited:
		return free
	case f.retried:
		return retried
	}
	return limited
}

// classes has the lanes of a priority, by their classes.
type classes [numClasses]laneHeap

func (c *classes) empty() bool {
	return !slices.ContainsFunc(c[:], func(h laneHeap) bool { return len(h) > 0 })
}

// firstDue returns the lane that has been due for longest, and false if none is due.
func (c *classes) firstDue(now time.Time) (first *laneState, ok bool) {
	for _, h := range c {
		if len(h) > 0 && !h[0].Due.After(now) && (first == nil || h[0].comesBefore(first)) {
			first = h[0]
		}
	}
	return first, first != nil
}

// anyDue reports whether a lane with limits, or one without, is due.
func (c *classes) anyDue(now time.Time, withLimits bool) bool {
	return slices.ContainsFunc(c[:], func(h laneHeap) bool {
		return len(h) > 0 && h[0].limited == withLimits && !h[0].Due.After(now)
	})
}

// due returns up to most lanes that are due, with limits or without. If there are too few places,
// lanes that are tried again get half of them at most.
func (c *classes) due(now time.Time, most int, withLimits bool) []*laneState {
	if !withLimits {
		return firstOf(&c[free], now, most)
	}
	fresh, again := firstOf(&c[limited], now, most), firstOf(&c[retried], now, most)
	again = again[:min(len(again), max(most-len(fresh), most/2))]
	list := slices.Concat(fresh[:min(len(fresh), most-len(again))], again)
	slices.SortFunc(list, func(f, g *laneState) int {
		if f.comesBefore(g) {
			return -1
		}
		return 1
	})
	return list
}

// firstOf returns the first lanes of a heap that are due, up to most.
func firstOf(h *laneHeap, now time.Time, most int) (list []*laneState) {
	for len(list) < most && len(*h) > 0 && !(*h)[0].Due.After(now) {
		f, _ := heap.Pop(h).(*laneState)
		list = append(list, f)
	}
	for _, f := range list {
		heap.Push(h, f)
	}
	return list
}
