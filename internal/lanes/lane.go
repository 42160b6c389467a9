package lanes

import (
	"cmp"
	"container/list"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// laneState is a worker's knowledge of a lane. Anchors are microseconds since 1970, by the database's clock.
type laneState struct {
	store.Lane
	// Due is when the first task falls due, by the worker's monotonic clock. It is
	// zero if no task is known.
	Due time.Time
	// delay is the policy's part of the wait until Due.
	delay time.Duration
	// scanFrom is the anchor from which claims search.
	scanFrom int64
	// firstAnchor is the anchor of the first task, if a sweep or a recheck found the task, or 0.
	firstAnchor int64
	// claimedUpTo is the anchor up to which all tasks have been claimed. A transaction that commits late
	// can still add a task before it, so every sweep reads the lane from its beginning.
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
	// unclaimable means that the first task seems due, but that claims might not find the task:
	// a transaction locks its row, or its anchor is before 1970.
	unclaimable bool

	limited   bool          // its tasks have limits
	retried   bool          // the last claim was in vain, and nothing is known to have changed since
	class     class         // the line in which the lane is, unless parked
	in        *classes      // in which the lane is or was last; pass belongs to them
	pass      int64         // the pass of the group that the lane left last
	group     *group        // the group in which the lane is, or nil
	weight    int           // of its turn in the last claim, or 0
	more      bool          // a claim has taken some of the tasks and left others
	served    time.Time     // when a claim last took tasks, if the lane has a key
	heapIndex int           // in the heap of its group, of its class, or of its limit
	parked    *parkedLanes  // all lanes that the same limit holds back, or nil
	wait      time.Duration // the last guess of how long a limit holds the lane back
	guessed   bool          // the lane is parked until a guessed time
	heldUntil time.Time     // the last time at which limits are known to have held back tasks of the lane, or zero
	behind    *awaitedTask  // the task behind which the lane is parked, or nil
	awaited   int           // how many parked lanes wait for the first task of this lane
	emptyElem *list.Element // in the list of empty lanes, or nil
}

// waitingSince returns when the lane's wait among other lanes began: when its first task fell due. Lanes with keys
// take turns, so each claim that takes their tasks begins their wait anew.
func (f *laneState) waitingSince() time.Time {
	if f.served.After(f.Due) {
		return f.served
	}
	return f.Due
}

// hasDelay reports whether the policy of the lane's tasks delays them.
func (f *laneState) hasDelay() bool { return f.Attempts > 0 && f.State == statements.StateOpen }

// commitMargin is how far before claimedUpTo claims search, since tasks are not committed in the order of their
// anchors. The next sweep finds tasks that are committed even later.
const commitMargin = 50 * time.Millisecond

// bound returns the anchor from which claims search for new tasks of the lane.
func (f *laneState) bound() int64 { return max(f.claimedUpTo-commitMargin.Microseconds(), 0) }

// FirstTask is the first task that a sweep or a recheck found in a lane. Due is zero while the
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

// comesBefore reports whether claims take from the lane before they take from another lane of its group: lower
// priority numbers come first, then lanes that have waited for longer. Lanes that are not due are in the order in
// which they fall due.
func (f *laneState) comesBefore(g *laneState) bool {
	return cmp.Or(cmp.Compare(f.Priority, g.Priority), f.waitingSince().Compare(g.waitingSince()), cmp.Compare(f.Kind, g.Kind), cmp.Compare(f.Attempts, g.Attempts)) < 0
}

func (f *laneState) at() *int { return &f.heapIndex }
