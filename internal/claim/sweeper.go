package claim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// sweeper finds the tasks of a queue that the worker does not know of, at every poll
// and soon after a claim that emptied lanes, and records them in the lane tracker. A
// sweep finds all lanes, and looks into each from its beginning. Where that is costly,
// because of many lanes, or because an open transaction keeps the index entries of
// tasks that have gone, most turns are looks instead: into the lanes that were emptied
// last, each from the anchor up to which it has been claimed.
type sweeper struct {
	SweepConfig
	queue    string
	lanes    *lanes.Tracker
	gates    Gates
	events   events
	observer Observer
	wake     chan<- struct{} // tells the poller that a task was found
	answered func()          // is called after each turn that has not failed
	// version counts the changes of policies.
	version func() int64 // nil if none comes
	// Only one turn at a time uses these:
	reported map[corruption]bool // by the last sweep
	sweepAt  time.Time           // from when on a turn is a sweep

	running sync.WaitGroup // has the turn that runs
	asleep  atomic.Bool    // no task has come for long, and the prober looks for new ones

	mu   sync.Mutex
	at   time.Time     // when the next turn is due
	last time.Time     // when the last turn ended
	cost time.Duration // how long it took
	busy bool          // a turn runs
	late time.Time     // when it will have taken longer than the interval
	err  error         // of the last turn, until the poller has it
}

const (
	// turnShare limits turns to a tenth of the time, unless a poll is due, and
	// sweepShare limits sweeps to a twentieth in any case, as long as the next one is due
	// within maxSweepPause: a sweep is slow, too, that waits for a connection, and only
	// sweeps find tasks that claims have passed over.
	turnShare, sweepShare = 10, 20
	maxSweepPause         = 10 * time.Second
	// asleepSweeps is how much longer than the poll interval the pauses of a worker are
	// that is asleep.
	asleepSweeps = 8
	// minPause is the shortest pause before a turn that a claim or a notice asks for.
	minPause = 20 * time.Millisecond
	// maxLooks is the greatest number of lanes of one look.
	maxLooks = 128
)

// SweepConfig says how a sweeper finds lanes, and how often.
type SweepConfig struct {
	every time.Duration
	heads func(context.Context) ([]store.Head, error)
	look  func(context.Context, []store.Source) ([]store.Head, error)
	share int // how many times as long as a turn the pause after it is; 0 is turnShare
}

// SweepEvery returns how a queue's lanes are found. Where ids do not ascend, turns stand in for
// probes.
func SweepEvery(interval time.Duration, finder *store.LaneFinder, ascendingIDs bool) SweepConfig {
	c := SweepConfig{every: interval, heads: finder.Find, look: finder.Look}
	if !ascendingIDs {
		c.share = probeShare
	}
	return c
}

func newSweeper(cfg PollerConfig, lanes *lanes.Tracker, wake chan<- struct{}) *sweeper {
	return &sweeper{
		SweepConfig: cfg.Sweep, queue: cfg.Queue, lanes: lanes, gates: cfg.Gates, events: cfg.events(), observer: cfg.Observer,
		wake: wake, version: cfg.PolicyVersion,
	}
}

// corruption is a reason why the first task of a lane is corrupt. Each is reported
// once.
type corruption struct {
	store.Lane
	what string
}

// never is how far off the next turn is while one runs, unless somebody asks for it.
const never = 100 * 365 * 24 * time.Hour

// next returns when the next turn is due, or when the one that runs is late.
func (s *sweeper) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return s.late
	}
	return s.at
}

// endedAt returns when the last turn ended, or the zero time.
func (s *sweeper) endedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// isLate reports, once in each interval, whether a turn runs that takes longer than
// that. What a poll would find is not found meanwhile.
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

// failure returns the error of the last turn, once.
func (s *sweeper) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// startIfDue starts a turn if one is due, and wakes the poller when it has ended. A
// Turn may take long, and claims go on meanwhile.
func (s *sweeper) startIfDue(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || time.Now().Before(s.at) {
		return
	}
	s.busy, s.late = true, time.Now().Add(s.every)
	s.running.Go(func() {
		before := s.policyVersion()
		err := s.turn(ctx)
		if err == nil {
			s.answered()
		}
		if s.policyVersion() != before { // it may have gone by the old ones
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

// request makes the next turn due now, or soon if the last one has just ended.
func (s *sweeper) request() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(s.last)
}

// makeDueSoon makes the next turn due soon.
func (s *sweeper) makeDueSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(time.Now())
}

// makeDueAfter makes the next turn due so soon after t that turns take no more than
// their share of the time.
func (s *sweeper) makeDueAfter(t time.Time) {
	s.dueBy(t.Add(max(time.Duration(cmp.Or(s.share, turnShare))*s.cost, minPause)))
}

func (s *sweeper) policyVersion() int64 {
	if s.version == nil {
		return 0
	}
	return s.version()
}

// turn sweeps, or looks if sweeps would take more than their share of the time.
func (s *sweeper) turn(ctx context.Context) error {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	start := s.begin()
	if start.Before(s.sweepAt) {
		heads, err := s.look(ctx, s.lanes.Remembered(maxLooks))
		if err != nil {
			return err
		}
		s.lanes.Found(s.firstTasks(heads, start))
		s.schedule(start, s.sweepAt) // what a look cannot find, a sweep will
		return nil
	}
	s.lanes.BeginSweep()
	heads, err := s.heads(ctx)
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
	s.sweepAt = time.Now().Add(min(sweepShare*time.Since(start), maxSweepPause))
	s.schedule(start, start.Add(never)) // before others may empty the lanes that were found
	s.lanes.Swept(found, now, start)
	return nil
}

// firstTasks returns the first tasks of lanes. Those of lanes that the gates leave out
// are not timed.
func (s *sweeper) firstTasks(heads []store.Head, start time.Time) []lanes.FirstTask {
	found := make([]lanes.FirstTask, 0, len(heads))
	for _, h := range heads {
		if h.Corrupt != nil {
			continue
		}
		t := lanes.FirstTask{Lane: h.Lane, Anchor: max(h.Anchor, earliestMoment), Now: h.Now, Unclaimable: h.Anchor < FirstAnchor}
		rule := s.gates.policyOf(h.Lane, nil)
		if rule == nil {
			// There may be more lanes than rules that are remembered.
			if t.Due, t.Delay = s.lanes.DueOf(h.Lane, t.Anchor); t.Due.IsZero() {
				rule = s.gates.policyOf(h.Lane, func() { s.findLater(h, start) })
			}
		}
		if rule != nil {
			t.Delay = rule.DelayIn(h.Lane)
			t.Due = start.Add(t.Delay - store.Duration(h.Now-max(h.Anchor, 0)))
		}
		found = append(found, t)
	}
	return found
}

// findLater records the first task of a lane that the gates left out at first.
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

// begin returns the time, from which on somebody may ask for the turn after this one.
func (s *sweeper) begin() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := time.Now()
	s.at = start.Add(never)
	return start
}

// schedule makes the next turn due after the interval, or by a time before that, unless
// somebody has asked for it to be sooner. It notes what the turn that began at start cost.
func (s *sweeper) schedule(start, by time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	s.cost = s.last.Sub(start)
	every := s.every
	if s.asleep.Load() {
		every *= asleepSweeps
	}
	s.dueBy(s.last.Add(every + rand.N(every/10+1)))
	s.dueBy(by)
}

// dueBy makes the next turn due at a time, unless it is due before.
func (s *sweeper) dueBy(at time.Time) {
	if at.Before(s.at) {
		s.at = at
	}
}

// falldue writes no anchor before firstAnchor or after lastAnchor. RunAt may be in
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
