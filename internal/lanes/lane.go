package lanes

import (
	"cmp"
	"container/list"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// knownLane is what a worker knows of a lane. Anchors are in the database's
// microseconds since 1970.
type knownLane struct {
	store.Lane
	// Due is when the first task falls due, by the worker's monotonic clock. It is
	// zero if no task is known.
	Due time.Time
	// Delay is the part of due that the lane's policy gives.
	delay time.Duration
	// scanFrom is the anchor from which claims look.
	scanFrom int64
	// firstAnchor is that of the first task, if a sweep or a look found it, or 0.
	firstAnchor int64
	// claimedUpTo is the anchor up to which all tasks have been claimed. A task can still
	// appear before it when a transaction commits late, so every sweep looks from the
	// beginning of the lane.
	claimedUpTo int64
	// hinted is when the first task falls due that this process has put into the
	// lane since a claim or a sweep last began, whose answer may lack the task. It
	// is zero if there is none.
	hinted time.Time
	// claimed is the number of the sweep that had begun when a claim last changed what
	// is known. The sweep's answer may be older.
	claimed int
	// Unclaimable means that the first task seems due, but perhaps no claim finds it:
	// somebody has locked its row, or set its anchor to a time before 1970.
	unclaimable bool

	served    time.Time     // when a claim that left tasks last took some
	heapIndex int           // in the heap of its priority, or in that of the limit
	parked    *parkedLanes  // by the limit that holds it back, or nil
	wait      time.Duration // for which a limit held it back in vain
	emptyElem *list.Element // in the list of empty lanes, or nil
}

// turn is the time since which the lane waits for its turn among those of its kind.
func (f *knownLane) turn() time.Time {
	if f.served.After(f.Due) {
		return f.served
	}
	return f.Due
}

// hasDelay reports whether the policy of the lane's tasks delays them.
func (f *knownLane) hasDelay() bool { return f.Attempts > 0 && f.State == statements.StateOpen }

// commitMargin is how much later than a task with a later anchor a task may be
// committed and still be found by the next claim from its lane. A task that is
// committed later than that is found by the next sweep.
const commitMargin = 50 * time.Millisecond

// bound returns the anchor from which to look for tasks that come into the lane.
func (f *knownLane) bound() int64 { return max(f.claimedUpTo-commitMargin.Microseconds(), 0) }

// FirstTask is the first task of a lane, as a sweep or a look found it. Its due time is
// zero while the rule of the lane is not known.
type FirstTask struct {
	store.Lane
	Due         time.Time
	Delay       time.Duration // the part of due that the policy gives
	Anchor, Now int64         // by the database's clock
	Unclaimable bool
}

// precedes reports whether the task falls due before those that are known of its lane.
func (t FirstTask) precedes(f *knownLane) bool { return f.Due.IsZero() || t.Due.Before(f.Due) }

// comesBefore reports whether the lane is claimed from before another one: that of the
// lowest priority first whose first task falls due first.
func (f *knownLane) comesBefore(g *knownLane) bool {
	return cmp.Or(cmp.Compare(f.Priority, g.Priority), f.Due.Compare(g.Due), cmp.Compare(f.Kind, g.Kind), cmp.Compare(f.Attempts, g.Attempts)) < 0
}

func (f *knownLane) at() *int { return &f.heapIndex }

// laneHeap holds lanes in which a task is known.
type laneHeap = indexedHeap[*knownLane]
