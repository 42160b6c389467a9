package lanes

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// parkedLanes are the lanes that a limit holds back. They wait until a task of this process
// that held a permit of the limit has ended, or until retry.
type parkedLanes struct {
	limit     string
	lanes     laneHeap
	retry     time.Time
	heapIndex int // in the heap of retries
}

// comesBefore reports whether the limit is tried again before another one.
func (h *parkedLanes) comesBefore(other *parkedLanes) bool { return h.retry.Before(other.retry) }

func (h *parkedLanes) at() *int { return &h.heapIndex }

// minPark is the shortest time for which a limit holds back a lane, doubled with each claim
// in vain.
const minPark = 4 * time.Millisecond

// releasePause is how long the others of a limit's lanes wait after some were released.
const releasePause = 160 * time.Millisecond

// maxReleased is the greatest number of lanes of a limit that are released at a time.
const maxReleased = 128

// Park takes back a lane that is due, for wait or, if wait is 0, longer from time to time
// up to most. It does not if a permit of the limit was freed since the claim began.
func (l *Tracker) Park(at store.Lane, limit string, wait, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.Lanes[at]
	if f == nil || f.heapIndex == notInHeap || f.parked != nil {
		return
	}
	if wait == 0 {
		f.wait = min(max(2*f.wait, minPark), max(most, minPark))
		wait = f.wait/2 + rand.N(f.wait/2)
	}
	if l.freedSince[limit] {
		f.wait, wait = 0, 0
	}
	l.remove(f)
	h := l.parked[limit]
	retry := time.Now().Add(wait)
	if h == nil {
		h = &parkedLanes{limit: limit, retry: retry}
		l.parked[limit] = h
		heap.Push(&l.retries, h)
	} else if retry.Before(h.retry) {
		h.retry = retry
		heap.Fix(&l.retries, h.heapIndex)
	}
	f.parked = h
	heap.Push(&h.lanes, f)
}

// Freed releases lanes of limits that may admit more tasks.
func (l *Tracker) Freed(limits []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, limit := range limits {
		l.freedSince[limit] = true
		if h := l.parked[limit]; h != nil {
			l.release(h)
		}
	}
}

// BeginLimited is called before a claim from lanes that have limits.
func (l *Tracker) BeginLimited() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.freedSince)
}

// Admitted records that a lane's limits admitted tasks.
func (l *Tracker) Admitted(at store.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.Lanes[at]; f != nil {
		f.wait, f.served = 0, time.Now()
	}
}

// releaseDue releases lanes whose limits are to be tried again.
func (l *Tracker) releaseDue(now time.Time) {
	for len(l.retries) > 0 && !l.retries[0].retry.After(now) {
		l.release(l.retries[0])
	}
}

// release releases the first lanes that a limit holds back. If there are others, they are
// tried again soon, unless those get all that the limit admits.
func (l *Tracker) release(h *parkedLanes) {
	for n := 0; n < maxReleased && len(h.lanes) > 0; n++ {
		f, _ := heap.Pop(&h.lanes).(*knownLane)
		f.parked = nil
		l.push(f)
	}
	if len(h.lanes) == 0 {
		l.dropParked(h)
		return
	}
	h.retry = time.Now().Add(releasePause)
	heap.Fix(&l.retries, h.heapIndex)
}

func (l *Tracker) dropParked(h *parkedLanes) {
	delete(l.parked, h.limit)
	heap.Remove(&l.retries, h.heapIndex)
}
