package falldue

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// sweeper finds the lanes of a queue, at every poll and soon after a claim that
// emptied lanes, and records them in the lane tracker.
type sweeper struct {
	queue    string
	every    time.Duration
	heads    func(context.Context) ([]store.Head, error)
	lanes    *laneTracker
	gates    gates
	events   events
	reported map[corruption]bool // by the last sweep; only the poller's loop uses it

	mu   sync.Mutex
	at   time.Time     // when the next sweep is due
	last time.Time     // when the last sweep ended
	cost time.Duration // how long the last sweep took
}

// corruption is a reason why the first task of a lane is corrupt. Each is reported
// once.
type corruption struct {
	store.Lane
	what string
}

// next returns when the next sweep is due.
func (s *sweeper) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// request makes the next sweep due now, or soon if the last one has just ended.
func (s *sweeper) request() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(s.last)
}

// makeDueSoon makes the next sweep due soon.
func (s *sweeper) makeDueSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeDueAfter(time.Now())
}

// makeDueAfter makes the next sweep due so soon after t that sweeps take no more than
// a tenth of the time.
func (s *sweeper) makeDueAfter(t time.Time) {
	if soon := t.Add(max(10*s.cost, 20*time.Millisecond)); soon.Before(s.at) {
		s.at = soon
	}
}

// sweep finds the lanes of the queue.
func (s *sweeper) sweep(ctx context.Context) error {
	ctx, cancel := statementContext(ctx, sweepTimeout)
	defer cancel()
	s.lanes.beginSweep()
	start := time.Now()
	heads, err := s.heads(ctx)
	if err != nil {
		return err
	}
	found, reported := map[store.Lane]knownLane{}, map[corruption]bool{}
	for _, h := range heads {
		if what := corruptionOf(h); what != "" {
			c := corruption{h.Lane, what}
			reported[c] = true
			if !s.reported[c] {
				s.events.corruptLane(s.queue, h, what)
			}
		}
		if h.Corrupt != nil {
			continue
		}
		if rule := s.gates.rule(ctx, h.Lane); rule != nil {
			found[h.Lane] = knownLane{
				due:   start.Add(rule.delayIn(h.Lane) - store.Duration(h.Now-max(h.Anchor, 0))),
				since: max(h.Anchor, earliestMoment), unclaimable: h.Anchor < firstAnchor,
			}
		}
	}
	s.reported = reported
	s.schedule(time.Since(start)) // before others may empty the lanes that were found
	s.lanes.swept(found, start)
	return nil
}

// schedule makes the next sweep due after the interval, and notes what the last cost.
func (s *sweeper) schedule(cost time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cost, s.last = cost, time.Now()
	s.at = s.last.Add(s.every + rand.N(s.every/10+1))
}

// falldue writes no anchor before firstAnchor or after lastAnchor. RunAt may be in
// the year 9000, and a policy's jitter may be 100 years. A text in SQLite's column
// is read as a time on the first day of 1970.
var (
	earliestMoment = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() // the earliest that all engines can write
	firstAnchor    = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastAnchor     = time.Date(9101, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)

// corruptionOf returns why the first task of a lane is corrupt, or "".
func corruptionOf(h store.Head) string {
	switch {
	case h.Corrupt != nil:
		return h.Corrupt.Error()
	case h.Attempts < 0:
		return "attempts below 0"
	case h.Anchor < firstAnchor || h.Anchor > lastAnchor:
		return "updated_at out of range"
	}
	return ""
}
