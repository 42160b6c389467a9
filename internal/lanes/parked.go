package lanes

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// parkedLanes are the lanes that a limit holds back. They wait until this process has ended a task
// with a permit of the limit, or until retry.
type parkedLanes struct {
	limit     string
	lanes     laneHeap
	behind    int // how many of the lanes wait for a task that is due later
	retry     time.Time
	heapIndex int // in the heap of retries
}

// awaitedTask is a task behind which a lane is parked.
type awaitedTask struct {
	FirstTask
	head  *laneState    // its lane
	pause time.Duration // after the task has fallen due, so that it may end
}

// comesBefore reports whether the limit is tried again before another one.
func (h *parkedLanes) comesBefore(other *parkedLanes) bool { return h.retry.Before(other.retry) }

func (h *parkedLanes) at() *int { return &h.heapIndex }

// minPark is the shortest time for which a limit holds back a lane, doubled with each claim
// in vain.
const minPark = 4 * time.Millisecond

// releasePause is how long the other lanes of a limit wait after some were released.
const releasePause = 160 * time.Millisecond

// maxReleased is the greatest number of lanes of a limit that are released at a time.
const maxReleased = 128

// Parked lanes are tried again even without an event, since an event may have been missed. However
// many lanes are parked, a bounded number is tried in a second, so that other lanes have their share.
const (
	// recheck is the longest time for which a lane stays parked behind a task. Each sweep that finds the task
	// in its place begins the time anew. The time is longer if more than recheckRate such lanes would be tried
	// in a second.
	recheck, recheckRate = 5 * time.Minute, 250
	// At most firstRate lanes that were parked recently are tried in a second, and guessRate of the others.
	firstRate, guessRate = 16_000, 500
	// maxGrain is the greatest unit to which the times of tries are rounded. Lanes with equal times
	// share a claim.
	maxGrain = 2048 * time.Millisecond
)

// Park makes claims leave out a due lane for wait. If wait is 0, the time is a guess from least on, doubled from try
// to try up to most. If a permit of the limit was freed since the claim began, the lane stays due.
func (l *Tracker) Park(at store.Lane, limit string, wait, least, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.Lanes[at]
	if f == nil || f.heapIndex == notInHeap || f.parked != nil {
		return
	}
	f.retried, f.heldUntil = true, time.Now()
	guess := wait == 0
	if guess {
		lanes := time.Duration(l.guessed)
		least, most := max(least, minPark, lanes*time.Second/firstRate), max(most, minPark, lanes*time.Second/guessRate)
		f.wait = min(max(2*f.wait, least), most)
		wait = f.wait/2 + rand.N(f.wait/2)
	}
	if l.claiming[limit] {
		f.wait, f.retried, wait = 0, false, 0
	}
	retry := time.Now().Add(wait)
	if guess {
		retry = l.together(retry)
	}
	l.park(f, limit, retry)
	if guess {
		f.guessed = true
		l.guessed++
	}
}

// ParkBehind makes claims leave out a due lane until another task of the limit has fallen due, and for a
// pause after that, so that the other task may end.
func (l *Tracker) ParkBehind(at store.Lane, limit string, task FirstTask, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.Lanes[at]
	if f == nil || f.heapIndex == notInHeap || f.parked != nil {
		return
	}
	f.retried, f.heldUntil, f.claimed = true, time.Now(), l.sweeps
	behind := &awaitedTask{task, l.stateOf(task.Lane), pause}
	retry := l.retryBehind(behind)
	if l.claiming[limit] {
		f.wait, f.retried = 0, false
		retry = l.together(task.Due)
	}
	l.park(f, limit, retry)
	f.behind = behind
	f.parked.behind++
	l.behind++
	if behind.head.Due.IsZero() {
		l.find(behind.head, task)
	}
	l.count(behind.head, -1)
	behind.head.awaited++
	l.count(behind.head, 1)
}

// retryBehind returns when to try a lane again that waits for a task.
func (l *Tracker) retryBehind(task *awaitedTask) time.Time {
	now := time.Now()
	retry := now
	if task.Due.After(now) {
		retry = task.Due
	}
	retry = retry.Add(task.pause)
	longest := max(recheck, time.Duration(l.behind)*time.Second/recheckRate)
	if again := now.Add(longest/2 + rand.N(longest/2)); again.Before(retry) {
		retry = again
	}
	return l.together(retry)
}

// together returns a time at which to try a lane again. A time far off becomes a little earlier, so
// that lanes share a claim.
func (l *Tracker) together(retry time.Time) time.Time {
	wait := time.Until(retry)
	if wait <= releasePause {
		return retry
	}
	grain := time.Millisecond
	for grain < maxGrain && 2*grain <= wait/8 { // powers of two, which have multiples in common
		grain *= 2
	}
	return retry.Add(-(retry.Sub(l.start) % grain))
}

// park adds a lane to the lanes that a limit holds back. They are tried again at retry at the latest.
func (l *Tracker) park(f *laneState, limit string, retry time.Time) {
	l.remove(f)
	h := l.parked[limit]
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

// unpark records that a lane is no longer parked.
func (l *Tracker) unpark(f *laneState) {
	if f.behind != nil {
		l.behind--
		f.parked.behind--
		head := f.behind.head
		l.count(head, -1)
		head.awaited--
		l.count(head, 1)
	}
	if f.guessed {
		l.guessed--
	}
	f.parked, f.behind, f.guessed = nil, nil, false
}

// seemsHeld reports whether the first task of the next lane seems to hold back a task: both are in one sequence, and
// that first task has failed and waits. Only a claim can be sure. With the guess, new keys need not wait until all
// such lanes have been tried.
func (l *Tracker) seemsHeld(t, next FirstTask, now time.Time) bool {
	return next.Key == t.Key && next.Kind == t.Kind && next.State == t.State && next.Attempts > t.Attempts &&
		next.Due.After(now) && !t.Due.After(now) && l.rules.Ordered(t.Lane)
}

// releaseMoved releases lanes if the last sweep did not find the task that they wait for in its place: the task
// may have ended.
func (l *Tracker) releaseMoved() {
	if l.behind == 0 {
		return
	}
	for _, f := range l.Lanes {
		if f.behind == nil || f.claimed == l.sweeps {
			continue
		}
		first := l.Lanes[f.behind.Lane]
		if first == nil && !l.forgotten.IsZero() { // trim may have dropped the lane
			continue
		}
		if first == nil || first.swept != l.sweeps || first.sweptAnchor > f.behind.Anchor {
			l.remove(f)
			f.retried, f.heldUntil = false, time.Now()
			l.push(f)
			continue
		}
		if h := f.parked; h.behind == len(h.lanes) {
			h.retry = l.retryBehind(f.behind)
		}
	}
	heap.Init(&l.retries)
}

// retimeParked lets lanes return earlier if the tasks that they wait for fall due earlier under the
// policies that are in effect now.
func (l *Tracker) retimeParked() {
	for _, h := range l.parked {
		for _, f := range h.lanes {
			if f.behind == nil {
				continue
			}
			if delay, known := l.rules.DelayOf(f.behind.Lane); known && f.behind.Delayed() {
				longer := delay - f.behind.Delay
				f.behind.Due = f.behind.Due.Add(longer)
				if f.behind.Delay = delay; longer < 0 {
					h.retry = h.retry.Add(longer)
				}
			}
		}
	}
	heap.Init(&l.retries)
}

// Freed releases the lanes of limits after this process has freed some of their permits.
func (l *Tracker) Freed(limits []string) { l.open(limits, true) }

// Open releases lanes of limits that a claim has found open.
func (l *Tracker) Open(limits []string) { l.open(limits, false) }

// open releases lanes of limits that may admit more tasks. held reports whether the limits held back the lanes
// until now.
func (l *Tracker) open(limits []string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, limit := range limits {
		if _, is := l.claiming[limit]; is {
			l.claiming[limit] = true
		}
		if h := l.parked[limit]; h != nil {
			for _, f := range h.lanes {
				if f.retried = false; held {
					f.heldUntil = now
				}
			}
			l.release(h)
		}
	}
}

// HeldUntil returns the last time at which limits are known to have held back tasks of a lane, or zero.
func (l *Tracker) HeldUntil(at store.Lane) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.Lanes[at]; f != nil {
		return f.heldUntil
	}
	return time.Time{}
}

// BeginLimited is called before a claim from lanes that have limits. It returns the lanes to claim from, up to most,
// and the limits of each.
// Claims that are under way at the same time have no limit in common, since they would take each other's permits. The
// claim is under way until end is called.
func (l *Tracker) BeginLimited(list []store.Lane, most int) (free []store.Lane, limits [][]store.Limit, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inVain = true
	ours := map[string]bool{}
	for _, at := range list {
		if len(free) == most {
			break
		}
		of := l.rules.LimitsOf(at)
		if slices.ContainsFunc(of, func(limit store.Limit) bool { _, is := l.claiming[limit.Name]; return is && !ours[limit.Name] }) {
			continue
		}
		for _, limit := range of {
			l.claiming[limit.Name], ours[limit.Name] = false, true
		}
		free, limits = append(free, at), append(limits, of)
	}
	l.underClaim += len(free)
	return free, limits, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for limit := range ours {
			delete(l.claiming, limit)
		}
		l.underClaim -= len(free)
	}
}

// Took records that a claim took tasks of a lane.
func (l *Tracker) Took(at store.Lane, tasks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inVain = false
	f := l.Lanes[at]
	if f == nil {
		return
	}
	f.wait, f.retried = releasePause/2, false // when its tasks end, this process knows that their permits are free
	if at.Key != "" {
		f.served = time.Now()
	}
	l.account(f.Priority, tasks)
	if f.heapIndex != notInHeap && f.parked == nil {
		f.in.took(f, int64(tasks)*passUnit/int64(max(f.weight, 1)))
	}
}

// releaseDue releases about most lanes of limits that are due for a try.
func (l *Tracker) releaseDue(now time.Time, most int) {
	for n := 0; n < most && len(l.retries) > 0 && !l.retries[0].retry.After(now); {
		n += l.release(l.retries[0])
	}
}

// heldAt returns until when limits are known to have held back a lane that is released now. The end of a guessed wait
// proves nothing: another process may have freed a permit long before.
func (f *laneState) heldAt(now time.Time) time.Time {
	switch {
	case f.guessed:
		return f.heldUntil
	case f.behind != nil && f.behind.Due.Before(now): // that task may have ended before now
		if f.behind.Due.Before(f.heldUntil) {
			return f.heldUntil
		}
		return f.behind.Due
	}
	return now
}

// release releases the first lanes that a limit holds back, and returns how many. The limit's other
// lanes are tried soon.
func (l *Tracker) release(h *parkedLanes) (n int) {
	for ; n < maxReleased && len(h.lanes) > 0; n++ {
		f, _ := heap.Pop(&h.lanes).(*laneState)
		f.heldUntil = f.heldAt(time.Now())
		l.unpark(f)
		l.push(f)
	}
	if len(h.lanes) == 0 {
		l.dropParked(h)
		return n
	}
	h.retry = time.Now().Add(releasePause)
	heap.Fix(&l.retries, h.heapIndex)
	return n
}

func (l *Tracker) dropParked(h *parkedLanes) {
	delete(l.parked, h.limit)
	heap.Remove(&l.retries, h.heapIndex)
}
