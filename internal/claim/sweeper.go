package claim

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// sweeper searches a queue for tasks that the worker does not know of, at every poll and soon
// after a claim that emptied lanes, and records them in the lane tracker. A search is a sweep or a
// recheck. A sweep finds all lanes, and reads each from its beginning. Sweeps are costly where
// there are many lanes, or where an open transaction keeps the index entries of tasks that have
// gone. Most searches are rechecks then: they read only the lanes that were emptied last, each
// from the anchor up to which it has been claimed.
type sweeper struct {
	queue    string
	every    time.Duration // the poll interval
	finder   finder
	lanes    *lanes.Tracker
	gates    Gates
	outage   *outage
	expiry   *expiry
	events   events
	observer Observer
	wake     chan<- struct{} // tells the poller that a task was found
	// pauseFactor is how many times as long as a search the pause after it is.
	pauseFactor time.Duration

	// Only one search at a time uses these:
	reported map[corruption]bool // by the last sweep
	sweepAt  time.Time           // from this time on a search is a sweep

	running sync.WaitGroup // waits for the running search
	asleep  atomic.Bool    // no task has come for long, and the prober watches for new tasks

	mu   sync.Mutex
	at   time.Time     // when the next search is due
	last time.Time     // when the last search ended
	cost time.Duration // how long it took
	busy bool          // a search runs
	late time.Time     // when the running search will have taken longer than the interval
	err  error         // of the last search, until the poller takes it
}

const (
	// searchPauseFactor limits searches to a tenth of the time, unless a poll is due, and
	// sweepPauseFactor limits sweeps to a twentieth in any case, as long as the next one is due
	// within maxSweepPause: a sweep that waits for a connection is slow, too, and only sweeps
	// find tasks that claims have passed over.
	searchPauseFactor, sweepPauseFactor = 10, 20
	maxSweepPause                       = 10 * time.Second
	// asleepFactor is how much longer than the poll interval the pauses of a sleeping worker are.
	asleepFactor = 8
	// minPause is the shortest pause before a search that a claim or a notification asks for.
	minPause = 20 * time.Millisecond
	// maxRechecked is the greatest number of lanes that a recheck reads.
	maxRechecked = 128
)

func newSweeper(cfg PollerConfig, lanes *lanes.Tracker, outage *outage, expiry *expiry, wake chan<- struct{}) *sweeper {
	pauseFactor := time.Duration(searchPauseFactor)
	if !cfg.AscendingIDs { // searches stand in for probes
		pauseFactor = probePauseFactor
	}
	return &sweeper{
		queue: cfg.Queue, every: cfg.PollInterval, finder: cfg.Finder, lanes: lanes, gates: cfg.Gates, outage: outage, expiry: expiry,
		events: cfg.events(), observer: cfg.Observer, wake: wake, pauseFactor: pauseFactor,
	}
}

// corruption is why the first task of a lane is corrupt. Each corruption is reported once.
type corruption struct {
	store.Lane
	what string
}

// never is how far off the next search is while one runs, unless one is requested.
const never = 100 * 365 * 24 * time.Hour

// next returns when the next search is due, or when the running search is late.
func (s *sweeper) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return s.late
	}
	return s.at
}

// endedAt returns when the last search ended, or the zero time.
func (s *sweeper) endedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// isLate reports, once in each interval, whether the running search takes longer than the
// interval. In the meantime nothing finds the tasks that a poll would find.
func (s *sweeper) isLate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.busy || now.Before(s.late) {
		return false
	}
	s.late = now.Add(s.every)
	return true
}

// failure returns the error of the last search, once.
func (s *sweeper) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// startIfDue starts a search if one is due, and wakes the poller when it has ended. A search
// can take long, and claims go on in the meantime.
func (s *sweeper) startIfDue(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || time.Now().Before(s.at) {
		return
	}
	s.busy, s.late = true, time.Now().Add(s.every)
	s.running.Go(func() {
		before := s.gates.version()
		err := s.search(ctx)
		if err == nil {
			s.outage.answered()
		}
		if s.gates.version() != before { // the search may have used the old policies
			s.lanes.Retime()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.busy, s.err = false, err; err != nil {
			s.at = time.Now()
		}
		retry.Signal(s.wake)
	})
}

// request makes the next search due now, or soon if the last one has just ended.
func (s *sweeper) request() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(s.last)
}

// makeDueSoon makes the next search due soon.
func (s *sweeper) makeDueSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(time.Now())
}

// makeDueAfter makes the next search due as soon after t as the searches' share of the time
// allows.
func (s *sweeper) makeDueAfter(t time.Time) {
	s.dueBy(t.Add(max(s.pauseFactor*s.cost, minPause)))
}

// search sweeps, or rechecks if sweeps would take more than their share of the time.
func (s *sweeper) search(ctx context.Context) error {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	start := s.begin()
	if start.Before(s.sweepAt) {
		heads, err := s.finder.Recheck(ctx, s.lanes.Remembered(maxRechecked))
		if err != nil {
			return err
		}
		s.lanes.Found(s.firstTasks(heads, start))
		s.schedule(start, s.sweepAt) // a sweep will find what a recheck cannot
		return nil
	}
	s.lanes.BeginSweep()
	heads, err := s.finder.Find(ctx)
	s.observer.Swept(s.queue, len(heads), start, err)
	if err != nil {
		return err
	}
	s.report(heads)
	var now int64
	if len(heads) > 0 {
		now = heads[0].Now
	}
	found := s.firstTasks(heads, start)
	s.sweepAt = time.Now().Add(min(sweepPauseFactor*time.Since(start), maxSweepPause))
	s.schedule(start, start.Add(never)) // before others may empty the lanes that were found
	s.lanes.Swept(found, now, start)
	return nil
}

// firstTasks returns the first tasks of lanes. If the gates leave a lane out, its first task has no due
// time.
func (s *sweeper) firstTasks(heads []store.Head, start time.Time) []lanes.FirstTask {
	found := make([]lanes.FirstTask, 0, len(heads))
	for _, h := range heads {
		if h.Corrupt != nil {
			continue
		}
		t := lanes.FirstTask{Lane: h.Lane, Anchor: max(h.Anchor, earliestMoment), Now: h.Now, Unclaimable: h.Anchor < FirstAnchor}
		policy := s.gates.policyOf(h.Lane, nil)
		if policy == nil {
			// There may be more lanes than remembered policies.
			if t.Due, t.Delay = s.lanes.DueOf(h.Lane, t.Anchor); t.Due.IsZero() {
				policy = s.gates.policyOf(h.Lane, func() { s.findLater(h, start) })
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

// findLater records the first task of a lane when the gates admit the lane.
func (s *sweeper) findLater(h store.Head, start time.Time) {
	s.lanes.Found(s.firstTasks([]store.Head{h}, start))
	retry.Signal(s.wake)
}

// report reports the corrupt lanes that the last sweep did not find.
func (s *sweeper) report(heads []store.Head) {
	reported := map[corruption]bool{}
	for _, h := range heads {
		if what := corruptionOf(h); what != "" {
			c := corruption{h.Lane, what}
			reported[c] = true
			if !s.reported[c] {
				s.events.corruptLane(s.queue, h, what)
			}
		}
	}
	s.reported = reported
}

// begin returns the time at which a search begins. Requests from then on are for the next search.
func (s *sweeper) begin() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := time.Now()
	s.at = start.Add(never)
	return start
}

// schedule makes the next search due after the interval, or by a time before that, unless an earlier
// search was requested. It notes the cost of the search that began at start.
func (s *sweeper) schedule(start, by time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	s.cost = s.last.Sub(start)
	every := s.every
	if s.asleep.Load() {
		every *= asleepFactor
	}
	s.dueBy(s.last.Add(every + rand.N(every/10+1)))
	s.dueBy(by)
}

// dueBy makes the next search due at a time, unless it is due before.
func (s *sweeper) dueBy(at time.Time) {
	if at.Before(s.at) {
		s.at = at
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
