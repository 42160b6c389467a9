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

	place  int           // in the heap of its priority, or in that of the limit
	held   *heldLanes    // by the limit that holds it back, or nil
	wait   time.Duration // for which a limit held it back in vain
	memory *list.Element // in the list of empty lanes, or nil
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

// laneHeap holds lanes in which a task is known, as a heap of package container/heap: the
// first is that of the lowest priority whose first task falls due first.
type laneHeap []*knownLane

func (h laneHeap) Len() int { return len(h) }

func (h laneHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.due.Compare(b.due), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Attempts, b.Attempts)) < 0
}

func (h laneHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds a *knownLane at the end.
func (h *laneHeap) Push(x any) {
	f, _ := x.(*knownLane)
	f.place = len(*h)
	*h = append(*h, f)
}

// Pop removes and returns the *knownLane at the end.
func (h *laneHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	f.place = nowhere
	return f
}

// heldLanes are the lanes that a limit holds back. They wait until a task of this process
// that held a permit of the limit has ended, or until retry.
type heldLanes struct {
	limit string
	lanes laneHeap
	retry time.Time
	place int // in the heap of retries
}

// retryHeap is a heap of package container/heap. The first limit is tried again first.
type retryHeap []*heldLanes

func (h retryHeap) Len() int           { return len(h) }
func (h retryHeap) Less(i, j int) bool { return h[i].retry.Before(h[j].retry) }

func (h retryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds a *heldLanes at the end.
func (h *retryHeap) Push(x any) {
	one, _ := x.(*heldLanes)
	one.place = len(*h)
	*h = append(*h, one)
}

// Pop removes and returns the *heldLanes at the end.
func (h *retryHeap) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return one
}

// nowhere is the place of a lane that is in no heap.
const nowhere = -1
