package falldue

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
	// due is when the first task falls due, by the worker's monotonic clock. It is
	// zero if no task is known.
	due time.Time
	// delay is the part of due that the lane's policy gives.
	delay time.Duration
	// since is the anchor from which claims look.
	since int64
	// anchor is that of the first task, if a sweep or a look found it, or 0.
	anchor int64
	// taken is the anchor up to which all tasks have been claimed. A task can still
	// appear before it when a transaction commits late, so every sweep looks from the
	// beginning of the lane.
	taken int64
	// hinted is when the first task falls due that this process has put into the
	// lane since a claim or a sweep last began, whose answer may lack the task. It
	// is zero if there is none.
	hinted time.Time
	// claimed is the number of the sweep that had begun when a claim last changed what
	// is known. The sweep's answer may be older.
	claimed int
	// unclaimable means that the first task seems due, but perhaps no claim finds it:
	// somebody has locked its row, or set its anchor to a time before 1970.
	unclaimable bool

	served time.Time     // when a claim that left tasks last took some
	place  int           // in the heap of its priority, or in that of the limit
	held   *heldLanes    // by the limit that holds it back, or nil
	wait   time.Duration // for which a limit held it back in vain
	memory *list.Element // in the list of empty lanes, or nil
}

// turn is the time since which the lane waits for its turn among those of its kind.
func (f *knownLane) turn() time.Time {
	if f.served.After(f.due) {
		return f.served
	}
	return f.due
}

// hasDelay reports whether the policy of the lane's tasks delays them.
func (f *knownLane) hasDelay() bool { return f.Attempts > 0 && f.State == statements.StateOpen }

// commitMargin is how much later than a task with a later anchor a task may be
// committed and still be found by the next claim from its lane. A task that is
// committed later than that is found by the next sweep.
const commitMargin = 50 * time.Millisecond

// bound returns the anchor from which to look for tasks that come into the lane.
func (f *knownLane) bound() int64 { return max(f.taken-commitMargin.Microseconds(), 0) }

// firstTask is the first task of a lane, as a sweep or a look found it. Its due time is
// zero while the rule of the lane is not known.
type firstTask struct {
	store.Lane
	due         time.Time
	delay       time.Duration // the part of due that the policy gives
	anchor, now int64         // by the database's clock
	unclaimable bool
}

// precedes reports whether the task falls due before those that are known of its lane.
func (t firstTask) precedes(f *knownLane) bool { return f.due.IsZero() || t.due.Before(f.due) }

// comesBefore reports whether the lane is claimed from before another one: that of the
// lowest priority first whose first task falls due first.
func (f *knownLane) comesBefore(g *knownLane) bool {
	return cmp.Or(cmp.Compare(f.Priority, g.Priority), f.due.Compare(g.due), cmp.Compare(f.Kind, g.Kind), cmp.Compare(f.Attempts, g.Attempts)) < 0
}

func (f *knownLane) at() *int { return &f.place }

// laneHeap holds lanes in which a task is known.
type laneHeap = placeHeap[*knownLane]

// heldLanes are the lanes that a limit holds back. They wait until a task of this process
// that held a permit of the limit has ended, or until retry.
type heldLanes struct {
	limit string
	lanes laneHeap
	retry time.Time
	place int // in the heap of retries
}

// comesBefore reports whether the limit is tried again before another one.
func (h *heldLanes) comesBefore(other *heldLanes) bool { return h.retry.Before(other.retry) }

func (h *heldLanes) at() *int { return &h.place }
