package falldue

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// minHold is the shortest time for which a limit holds back a lane, doubled with each claim
// in vain.
const minHold = 4 * time.Millisecond

// maxReleased is the greatest number of lanes of a limit that are released at a time.
const maxReleased = 128

// hold takes back a lane that is due, for wait or, if wait is 0, longer from time to time
// up to most. It does not if a permit of the limit was freed since the claim began.
func (l *laneTracker) hold(at store.Lane, limit string, wait, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.lanes[at]
	if f == nil || f.place == nowhere || f.held != nil {
		return
	}
	if wait == 0 {
		f.wait = min(max(2*f.wait, minHold), max(most, minHold))
		wait = f.wait/2 + rand.N(f.wait/2)
	}
	if l.freedSince[limit] {
		f.wait, wait = 0, 0
	}
	l.remove(f)
	h := l.held[limit]
	retry := time.Now().Add(wait)
	if h == nil {
		h = &heldLanes{limit: limit, retry: retry}
		l.held[limit] = h
		heap.Push(&l.retries, h)
	} else if retry.Before(h.retry) {
		h.retry = retry
		heap.Fix(&l.retries, h.place)
	}
	f.held = h
	heap.Push(&h.lanes, f)
}

// freed releases lanes of limits that may admit more tasks.
func (l *laneTracker) freed(limits []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, limit := range limits {
		l.freedSince[limit] = true
		if h := l.held[limit]; h != nil {
			l.release(h)
		}
	}
}

// beginLimited is called before a claim from lanes that have limits.
func (l *laneTracker) beginLimited() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.freedSince)
}

// admitted records that a lane's limits admitted tasks.
func (l *laneTracker) admitted(at store.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.lanes[at]; f != nil {
		f.wait, f.served = 0, time.Now()
	}
}

// releaseDue releases lanes whose limits are to be tried again.
func (l *laneTracker) releaseDue(now time.Time) {
	for len(l.retries) > 0 && !l.retries[0].retry.After(now) {
		l.release(l.retries[0])
	}
}

// release releases the first lanes that a limit holds back. If there are others, they are
// tried again soon, unless those get all that the limit admits.
func (l *laneTracker) release(h *heldLanes) {
	for n := 0; n < maxReleased && len(h.lanes) > 0; n++ {
		f, _ := heap.Pop(&h.lanes).(*knownLane)
		f.held = nil
		l.push(f)
	}
	if len(h.lanes) == 0 {
		l.dropHeld(h)
		return
	}
	h.retry = time.Now().Add(maxSlotWait)
	heap.Fix(&l.retries, h.place)
}

func (l *laneTracker) dropHeld(h *heldLanes) {
	delete(l.held, h.limit)
	heap.Remove(&l.retries, h.place)
}
