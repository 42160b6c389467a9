package claim

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// Sweeper is the role that searches the queues of a worker for tasks that the worker does not know, at every poll
// and soon after a claim that emptied lanes. It records the tasks in the lane trackers. One statement sweeps all queues
// that are due. A queue with many lanes is swept in parts, and other queues have their turns between the parts. A part
// that fails is tried again with smaller statements, and the lanes found before are kept.
type Sweeper struct {
	finder   finder
	classify func(error) dialect.Class
	pollers  *Pollers
	observer Observer
	events   events
	outage   *outage
	woken    chan struct{} // signalled when a search may be due earlier

	lanes, queues int // the most lanes that one statement finds, and queues that it searches
}

// finder finds the first tasks of lanes.
type finder interface {
	// Find finds up to most lanes behind places in queues, and returns the places at which to continue.
	// Even with an error, it returns the lanes found before.
	Find(ctx context.Context, places []store.Place, most int) ([]store.Found, []store.Place, error)
	// Recheck reads only some lanes.
	Recheck(ctx context.Context, queue string, sources []store.Source) ([]store.Head, error)
}

const (
	// firstPart is how many lanes the first statement of a worker may find, and maxPart the
	// greatest number, which takes some 50 milliseconds. After slow statements the next ones find fewer, but
	// minPart at least. If a statement fails, for example because of a time limit of the database user, the next
	// one may find an eighth.
	firstPart, maxPart, minPart = 1000, 5000, 1000
	// maxSwept is the greatest number of queues of one statement.
	maxSwept = store.MaxBatch
	// quickPart and slowPart are times of a part below and above which the next one has more lanes, or fewer.
	quickPart, slowPart = 50 * time.Millisecond, 200 * time.Millisecond
	// fullPauseFactor limits sweeps to a sixth of the time while enough lanes are known to be due.
	fullPauseFactor = 5
)

// NewSweeper returns a sweeper of the queues of pollers.
func NewSweeper(f finder, pollers *Pollers, classify func(error) dialect.Class, log *slog.Logger, o Observer) *Sweeper {
	return &Sweeper{
		finder: f, classify: classify, pollers: pollers, observer: o, events: events{log},
		outage: &outage{all: pollers, events: events{log}, woken: make(chan struct{}, 1)},
		woken:  make(chan struct{}, 1), lanes: firstPart, queues: maxSwept,
	}
}

// Work searches until ctx ends.
func (s *Sweeper) Work(ctx context.Context) {
	for ctx.Err() == nil {
		next, err := s.round(ctx)
		if err != nil {
			if pause := s.outage.pause(); ctx.Err() == nil {
				s.outage.await(ctx, retry.KindOf(s.classify(err), false), pause)
			}
			continue
		}
		if wait := time.Until(next); wait > 0 {
			retry.Await(ctx, s.woken, wait)
		}
	}
}

// round makes the searches that are due, and returns when the next one is.
func (s *Sweeper) round(ctx context.Context) (next time.Time, err error) {
	now := time.Now()
	var starting, going []*search
	due := false
	for _, queue := range s.pollers.Queues() {
		p := s.pollers.Of(queue)
		if p == nil { // removed
			continue
		}
		one := p.search
		switch {
		case one.sweep == nil && one.dueNow(now, false) && now.Before(one.sweepAt):
			if err := s.recheck(ctx, one); err != nil { // the database is unavailable
				return now, err
			}
		case one.sweep == nil && one.dueNow(now, true):
			starting = append(starting, one)
			due = due || one.dueNow(now, false)
		case one.sweep != nil && !now.Before(one.sweep.at):
			going = append(going, one)
		}
	}
	if due {
		for _, one := range starting {
			one.beginSweep()
		}
		going = append(starting, going...)
	}
	for len(going) > 0 && ctx.Err() == nil {
		n := 1 // a sweep that is behind its first place has many lanes: one statement for itself, and other sweeps have their turns
		for first := going[0]; n < min(len(going), s.queues) && first.isAtFirst() && going[n].isAtFirst(); {
			n++
		}
		if err := s.part(ctx, going[:n]); err != nil {
			return now, err
		}
		going = going[n:]
	}
	return s.next(), nil
}

// isAtFirst reports whether the sweep is at its first place.
func (s *search) isAtFirst() bool { return s.sweep.place == store.FirstPlace(s.queue) }

// next returns when the next search is due, or the next part of a sweep. A poller without room wakes the sweeper when
// the poller has room again and its search is due.
func (s *Sweeper) next() time.Time {
	now := time.Now()
	next := now.Add(time.Hour)
	for p := range s.pollers.All() {
		one := p.search
		one.mu.Lock()
		at := one.at
		one.mu.Unlock()
		if one.sweep != nil {
			at = one.sweep.at
		} else if !at.After(now) && !one.wanted() {
			continue
		}
		if at.Before(next) {
			next = at
		}
	}
	return next
}

// part makes the next part of sweeps.
func (s *Sweeper) part(ctx context.Context, list []*search) error {
	places := make([]store.Place, len(list))
	for i, one := range list {
		places[i] = one.sweep.place
		one.goOn()
	}
	start := time.Now()
	found, rest, err := s.find(ctx, places)
	took := time.Since(start)
	s.adapt(len(found), took, err)
	heads := make(map[string][]store.Head, len(list))
	for _, f := range found {
		heads[f.Queue] = append(heads[f.Queue], f.Head)
	}
	goOn := make(map[string]store.Place, len(rest))
	for _, place := range rest {
		goOn[place.Queue] = place
	}
	for _, one := range list {
		part := heads[one.queue]
		place, more := goOn[one.queue]
		switch {
		case !more || len(part) > 0: // the queue was swept before the failure
			s.observer.Swept(one.queue, len(part), start, nil)
		case err != nil:
			s.observer.Swept(one.queue, 0, start, err)
		}
		one.found(part, start, took*time.Duration(len(part)+1)/time.Duration(len(found)+len(list)))
		if !more {
			one.endSweep()
			continue
		}
		if one.sweep.place = place; err != nil {
			one.fail(retry.KindOf(s.classify(err), false) == retry.Outage)
			continue
		}
		one.sweep.at, one.sweep.failures = time.Now(), 0
		if len(part) > 0 && one.lanes.Full(one.sweep.at) {
			one.sweep.at = one.sweep.at.Add(min(max(fullPauseFactor*took, minPause), maxSweepPause))
		}
	}
	return s.ended(ctx, places, err)
}

// ended records that a search has succeeded or failed. It returns the error if the database is unavailable.
func (s *Sweeper) ended(ctx context.Context, places []store.Place, err error) error {
	if err == nil {
		s.outage.answered()
		return nil
	}
	if ctx.Err() == nil {
		names := make([]string, 0, maxNamed)
		for _, place := range places[:min(len(places), maxNamed)] {
			names = append(names, place.Queue)
		}
		s.events.pollFailed(strings.Join(names, " "), err)
	}
	if retry.KindOf(s.classify(err), false) == retry.Outage {
		return err
	}
	return nil
}

// find finds lanes behind places.
func (s *Sweeper) find(ctx context.Context, places []store.Place) ([]store.Found, []store.Place, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	return s.finder.Find(ctx, places, s.lanes)
}

// adapt sets the size of the next statements after the result of one.
func (s *Sweeper) adapt(found int, took time.Duration, err error) {
	switch {
	case err != nil && retry.KindOf(s.classify(err), false) != retry.Outage:
		s.lanes, s.queues = max(s.lanes/8, 1), max(s.queues/8, 1)
	case err != nil:
	case took < quickPart:
		s.lanes, s.queues = min(2*s.lanes, maxPart), min(2*s.queues, maxSwept)
	case took > slowPart && found >= s.lanes:
		s.lanes = max(s.lanes/2, min(s.lanes, minPart))
	}
}

// recheck reads the lanes of a queue that were emptied last.
func (s *Sweeper) recheck(ctx context.Context, one *search) error {
	start := one.begin()
	limited, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	heads, err := s.finder.Recheck(limited, one.queue, one.lanes.Remembered(store.MaxRechecked))
	outage := s.ended(ctx, []store.Place{{Queue: one.queue}}, err)
	if err != nil {
		one.giveUp(time.Now().Add(one.every))
		return outage
	}
	one.lanes.Found(one.firstTasks(heads, start))
	one.end(time.Since(start), one.sweepAt) // a sweep will find what a recheck cannot
	retry.Signal(one.wake)
	return nil
}

// maxNamed is how many queues a line of the log names.
const maxNamed = 5

// all returns all lanes of a queue.
func (s *Sweeper) all(ctx context.Context, queue string) (heads []store.Head, err error) {
	for places := []store.Place{store.FirstPlace(queue)}; len(places) > 0 && err == nil; {
		var found []store.Found
		found, places, err = s.finder.Find(ctx, places, maxPart)
		for _, f := range found {
			heads = append(heads, f.Head)
		}
	}
	return heads, err
}
