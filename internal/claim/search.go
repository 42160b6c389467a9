package claim

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// search looks for tasks of a queue that the worker does not know. It knows when the next search is due, and from
// where an unfinished sweep continues.
//
// A search is a sweep or a recheck. A sweep finds all lanes, some lanes at a time, and reads each lane from its
// beginning. Sweeps are costly if there are many lanes, or if an open transaction keeps the index entries of deleted
// tasks. Most searches are rechecks then. A recheck reads only the lanes that were emptied last, each from the anchor
// up to which it has been claimed.
type search struct {
	queue    string
	every    time.Duration // the poll interval
	lanes    *lanes.Tracker
	policies *control.Policies
	expiry   *expiry
	events   events
	wanted   func() bool     // reports whether the queue's poller can claim tasks, or claims some
	wake     chan<- struct{} // tells the poller that a task was found
	woken    chan<- struct{} // tells the sweeper that the search is due earlier
	// pauseFactor is the length of the pause after a search, divided by the length of the search.
	pauseFactor time.Duration

	// Only the sweeper uses these:
	reported, reporting map[corruption]bool // by the last sweep, and by the current one
	sweepAt             time.Time           // from then on a search is a sweep
	sweep               *sweep              // the current sweep, or nil

	asleep atomic.Bool // no task has come for long, and the prober looks for new ones

	mu   sync.Mutex
	at   time.Time     // when the next search is due
	last time.Time     // when the last search ended
	cost time.Duration // how long the last search took
	busy bool          // a search is running
	late time.Time     // when the running search will have taken longer than the interval
}

// sweep is an unfinished sweep of a queue.
type sweep struct {
	place    store.Place
	at       time.Time // when the next part begins
	start    time.Time
	now      int64         // the database's time when the first lane was read, or 0
	took     time.Duration // the parts so far
	lanes    int
	version  int64 // of the policies when the sweep began
	failures int   // in a row
}

const (
	// searchPauseFactor limits searches to a tenth of the time, unless a poll is due.
	// sweepPauseFactor limits sweeps to a twentieth in any case. The pause after a sweep is at most
	// maxSweepPause for each lanesPerPause lanes: a sweep that waits for a connection is slow, too,
	// and only sweeps find tasks that claims have passed over.
	searchPauseFactor, sweepPauseFactor = 10, 20
	maxSweepPause, lanesPerPause        = 10 * time.Second, 50_000
	// standInPauseFactor limits searches to a fifth of the time where they stand in for probes.
	standInPauseFactor = 4
	// asleepFactor multiplies the poll interval while the worker is asleep.
	asleepFactor = 8
	// minPause is the shortest pause before a search that a claim or a notification requests.
	minPause = 20 * time.Millisecond
)

func newSearch(cfg PollerConfig, lanes *lanes.Tracker, expiry *expiry, wanted func() bool, wake chan<- struct{}) *search {
	pauseFactor := time.Duration(searchPauseFactor)
	if !cfg.AscendingIDs {
		pauseFactor = standInPauseFactor
	}
	return &search{
		queue: cfg.Queue, every: cfg.PollInterval, lanes: lanes, policies: cfg.Policies, expiry: expiry, events: cfg.events(),
		wanted: wanted, wake: wake, woken: cfg.Sweeper.woken, pauseFactor: pauseFactor,
	}
}

// corruption is a reason why the first task of a lane is corrupt. Each is reported
// once.
type corruption struct {
	store.Lane
	what string
}

// never is the time until the next search while one runs, unless another is requested.
const never = 100 * 365 * 24 * time.Hour

// lateAt returns when the running search will be late, and false if no search is running.
func (s *search) lateAt() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late, s.busy
}

// endedAt returns when the last search ended, or the zero time.
func (s *search) endedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// isLate reports, once in each interval, whether the search that runs takes longer than the
// interval. In the meantime nothing finds the tasks that a poll would find.
func (s *search) isLate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.busy || now.Before(s.late) {
		return false
	}
	s.late = now.Add(s.every)
	return true
}

// wakeIfDue wakes the sweeper if a search is due. The poller may have had no use for the search before.
func (s *search) wakeIfDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy && !time.Now().Before(s.at) {
		retry.Signal(s.woken)
	}
}

// request makes the next search due now, or soon if the last one has just ended.
func (s *search) request() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(s.last)
}

// makeDueSoon makes the next search due soon.
func (s *search) makeDueSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(time.Now())
}

// makeDueAfter makes the next search due as soon after t as the searches' share of the time
// allows.
func (s *search) makeDueAfter(t time.Time) {
	s.dueBy(t.Add(max(s.pauseFactor*s.cost, minPause)))
}

// firstTasks returns the first tasks of lanes. First tasks of lanes that claims leave out have
// no due time.
func (s *search) firstTasks(heads []store.Head, start time.Time) []lanes.FirstTask {
	found := make([]lanes.FirstTask, 0, len(heads))
	for _, h := range heads {
		if h.Corrupt != nil {
			continue
		}
		t := lanes.FirstTask{Lane: h.Lane, Anchor: max(h.Anchor, earliestMoment), Now: h.Now, Unclaimable: h.Anchor < FirstAnchor}
		policy := s.policies.Of(h.Lane, nil)
		if policy == nil {
			// With more policies than the cache remembers, a known lane may have an unknown policy.
			if t.Due, t.Delay = s.lanes.DueOf(h.Lane, t.Anchor); t.Due.IsZero() {
				policy = s.policies.Of(h.Lane, func() { s.findLater(h, start) })
			}
		}
		if policy != nil {
			t.Delay = policy.DelayIn(h.Lane)
			t.Due = start.Add(t.Delay - store.Duration(h.Now-max(h.Anchor, 0)))
			s.expiry.found(h, policy)
		}
		found = append(found, t)
	}
	return found
}

// findLater records the first task of a lane that claims left out at first.
func (s *search) findLater(h store.Head, start time.Time) {
	s.lanes.Found(s.firstTasks([]store.Head{h}, start))
	retry.Signal(s.wake)
}

// report reports the corrupt lanes that neither the last sweep nor this one has reported.
func (s *search) report(heads []store.Head) {
	for _, h := range heads {
		if what := corruptionOf(h); what != "" {
			c := corruption{h.Lane, what}
			if !s.reported[c] && !s.reporting[c] {
				s.events.corruptLane(s.queue, h, what)
			}
			s.reporting[c] = true
		}
	}
}

// begin begins a search. From then on the search after this one can be requested.
func (s *search) begin() (start time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	start = time.Now()
	s.busy, s.late, s.at = true, start.Add(s.every), start.Add(never)
	return start
}

// goOn begins a part of a sweep.
func (s *search) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy {
		s.busy, s.late = true, time.Now().Add(s.every)
	}
}

// fail ends a failed part of a sweep. The sweep continues after a pause, or as soon as the database answers again.
func (s *search) fail(outage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if s.sweep.at = time.Now(); !outage {
		s.sweep.at = s.sweep.at.Add(retry.ErrorPause(s.sweep.failures))
	}
	s.sweep.failures++
}

// beginSweep begins a sweep.
func (s *search) beginSweep() {
	s.lanes.BeginSweep()
	s.sweep = &sweep{place: store.FirstPlace(s.queue), start: s.begin(), version: s.policies.Version()}
	s.reporting = map[corruption]bool{}
}

// endSweep ends a sweep that has found all lanes.
func (s *search) endSweep() {
	w := s.sweep
	s.sweep, s.reported = nil, s.reporting
	forgotten := s.lanes.EndSweep(w.now, w.start)
	if s.policies.Version() != w.version { // the sweep may have used the old ones
		s.lanes.Retime()
	}
	now := time.Now()
	s.sweepAt = now.Add(min(sweepPauseFactor*w.took, time.Duration(1+w.lanes/lanesPerPause)*maxSweepPause))
	if !forgotten.IsZero() && forgotten.Before(s.sweepAt) {
		s.sweepAt = now
		s.end(w.took, now)
		return
	}
	s.end(w.took, now.Add(never))
}

// found records the first tasks of lanes. A part of a sweep that began at start has found them.
func (s *search) found(heads []store.Head, start time.Time, took time.Duration) {
	if s.sweep.now == 0 && len(heads) > 0 {
		s.sweep.now = heads[0].Now
	}
	s.sweep.took += took
	s.sweep.lanes += len(heads)
	s.report(heads)
	s.lanes.SweptPage(s.firstTasks(heads, start))
	if len(heads) > 0 {
		retry.Signal(s.wake)
	}
}

// giveUp ends a search that failed. The next one is due at a time.
func (s *search) giveUp(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	s.dueBy(at)
}

// end makes the next search due after the interval, or at by if that is earlier, unless an
// even earlier search was requested. cost is how long the ended search took.
func (s *search) end(cost time.Duration, by time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	s.last = time.Now()
	s.cost = cost
	every := s.interval()
	s.dueBy(s.last.Add(every + rand.N(every/10+1)))
	s.dueBy(by)
}

// interval returns the time between two searches if none is requested.
func (s *search) interval() time.Duration {
	if s.asleep.Load() {
		return asleepFactor * s.every
	}
	return s.every
}

// dueNow reports whether a search is due and the poller can claim tasks. With early, a sweep that falls due soon
// is due, too, so that it can be made with another one.
func (s *search) dueNow(now time.Time, early bool) bool {
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	if early && !now.Before(s.sweepAt) {
		at = at.Add(-s.interval() / 2)
	}
	return !now.Before(at) && s.wanted()
}

// dueBy makes the next search due at a time, unless it is due before.
func (s *search) dueBy(at time.Time) {
	if at.Before(s.at) {
		s.at = at
		retry.Signal(s.woken)
	}
}

// falldue writes no anchor before FirstAnchor or after LastAnchor. RunAt may be in
// the year 9000, and a policy's jitter may be 100 years. A text in SQLite's column
// is read as a time on the first day of 1970.
var (
	earliestMoment = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() // the earliest that all engines can write
	FirstAnchor    = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro()
	LastAnchor     = time.Date(9101, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)

// corruptionOf returns why the first task of a lane is corrupt, or "".
func corruptionOf(h store.Head) string {
	switch {
	case h.Corrupt != nil:
		return h.Corrupt.Error()
	case h.Attempts < 0:
		return "attempts below 0"
	case h.Anchor < FirstAnchor || h.Anchor > LastAnchor:
		return "updated_at out of range"
	}
	return ""
}
