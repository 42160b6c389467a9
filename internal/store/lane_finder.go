package store

import (
	"context"
	"slices"
	"time"
)

// LaneFinder finds the lanes of queues. On engines where one statement may read all
// waiting rows (Caps.LooseScan), it first finds out which queues have tasks. In a few queues it sweeps by steps from
// lane to lane while there are few lanes. Where there are many, it uses one statement until that is slow, and from
// then on the way that took less time when it was last tried.
type LaneFinder struct {
	store      *Store
	strategies map[string]*sweepStrategy // by queue
	slow       int                       // statements for many queues in a row that were slow
	apart      time.Time                 // until then each queue is swept by itself, since two of them were slow
}

// NewLaneFinder returns a finder of lanes.
func (s *Store) NewLaneFinder() *LaneFinder {
	return &LaneFinder{store: s, strategies: map[string]*sweepStrategy{}}
}

// sweepStrategy decides between one statement and steps for the next sweep.
type sweepStrategy struct {
	oneStatement bool          // the next sweep is one statement
	otherTook    time.Duration // how long the last sweep the other way took
	trial        bool          // the next sweep tries this way
	retryOther   time.Time     // when to try the other way again although it was slower
	wasSlow      bool          // the last sweep was one statement and slow
	lanes        int           // that the last sweep found, unless it swept many queues
}

const (
	// fewLanes is the number of lanes up to which steps are as fast as one statement.
	fewLanes = 4
	// fewQueues is the number of queues up to which each is swept by itself.
	fewQueues = 4
	// groupedLanes is the greatest number of lanes that a queue may have had to be swept together with others.
	groupedLanes = 64
	// pageLanes is how many lanes FindAll finds with one statement.
	pageLanes = 5000
	// slowSweep is the time above which a sweep is slow. A sweep that jumps from lane to
	// lane takes less, unless there are very many lanes.
	slowSweep = 10 * time.Millisecond
	// retryInterval is the time after which the slower way is tried again, unless a
	// hundred times its duration is longer.
	retryInterval = time.Minute
	// minStepTime is about the shortest time that a step takes.
	minStepTime = 500 * time.Microsecond
)

// Find finds up to most lanes behind places in queues. It returns the places at which to continue, or
// none after all lanes. Even with an error, it returns the lanes found before.
func (w *LaneFinder) Find(ctx context.Context, places []Place, most int) (found []Found, rest []Place, err error) {
	if !w.store.server.Caps.LooseScan {
		return w.store.Sweep(ctx, places, most)
	}
	if len(places) > fewQueues && !slices.ContainsFunc(places, isBehindLane) {
		if places, err = w.store.occupied(ctx, places, ""); err != nil {
			return nil, places, err
		}
		if found, places, err = w.together(ctx, places, most); err != nil {
			return nil, places, err
		}
	}
	for i, place := range places {
		heads, next, err := w.findIn(ctx, place, most-len(found))
		found = append(found, inQueue(place.Queue, heads)...)
		if err != nil || next != nil || len(found) >= most {
			rest = slices.Clone(places[i:])
			if next != nil {
				rest[0] = *next
			} else if err == nil {
				rest = rest[1:]
			}
			return found, rest, err
		}
	}
	return found, nil, nil
}

// together uses one statement to find the lanes of queues that had few lanes when they were last swept. It returns the
// places that are left.
func (w *LaneFinder) together(ctx context.Context, places []Place, most int) (found []Found, rest []Place, err error) {
	var small []Place
	for _, place := range places {
		if strategy := w.strategies[place.Queue]; strategy != nil && strategy.lanes <= groupedLanes {
			small = append(small, place)
		} else {
			rest = append(rest, place)
		}
	}
	if len(small) <= fewQueues || time.Now().Before(w.apart) {
		return nil, places, nil
	}
	start := time.Now()
	found, left, err := w.store.Sweep(ctx, small, most)
	w.recordGroups(ctx, time.Since(start), len(found)+len(small), err)
	if len(left) > 0 { // the sweep failed, or some queues have many lanes
		for _, place := range left {
			w.strategies[place.Queue].lanes = groupedLanes + 1
		}
		return nil, places, err
	}
	return found, rest, nil
}

func isBehindLane(p Place) bool { return p.Lane != FirstPlace(p.Queue).Lane }

// FindAll finds all lanes of a queue.
func (w *LaneFinder) FindAll(ctx context.Context, queue string) (heads []Head, err error) {
	for places := []Place{FirstPlace(queue)}; len(places) > 0 && err == nil; {
		var found []Found
		found, places, err = w.Find(ctx, places, pageLanes)
		heads = append(heads, headsOf(found)...)
	}
	return heads, err
}

// Recheck finds the first task of each source from its since on.
func (w *LaneFinder) Recheck(ctx context.Context, queue string, sources []Source) ([]Head, error) {
	return w.store.Recheck(ctx, queue, sources)
}

// findIn finds up to most lanes behind a place, and returns the place at which to continue.
func (w *LaneFinder) findIn(ctx context.Context, place Place, most int) (heads []Head, next *Place, err error) {
	strategy := w.strategies[place.Queue]
	if strategy == nil {
		strategy = new(sweepStrategy)
		w.strategies[place.Queue] = strategy
	}
	heads, next, took, steps, err := w.sweep(ctx, strategy, place, most)
	// A sweep that timed out is recorded as slow, too. A sweep before a refresh of the
	// statistics is not recorded, since the next one may be faster.
	if strategy.lanes = len(heads); isBehindLane(place) || next != nil {
		strategy.lanes = groupedLanes + 1
	}
	if refreshed := took > slowSweep && !steps && w.store.RefreshStatistics(ctx); !refreshed {
		strategy.record(took, len(heads), time.Now())
	}
	return heads, next, err
}

// sweep finds the lanes behind a place. It reports how long that took, and whether it found the lanes by steps. Until one
// statement was slow for the first time, it takes steps to a few lanes only, and their time doesn't count.
func (w *LaneFinder) sweep(ctx context.Context, strategy *sweepStrategy, place Place, most int) (heads []Head, next *Place, took time.Duration, steps bool, err error) {
	start := time.Now()
	if !strategy.oneStatement {
		all := strategy.trial || !strategy.retryOther.IsZero()
		limit := most
		if !all {
			limit = min(most, fewLanes+1)
		}
		heads, next, err = w.store.sweepBySteps(ctx, place, limit)
		strategy.oneStatement = !all && next != nil && err == nil
		if !strategy.oneStatement || len(heads) == most {
			return heads, next, time.Since(start), true, err
		}
	}
	start = time.Now()
	found, rest, err := w.store.Sweep(ctx, []Place{place}, most)
	if next = nil; len(rest) > 0 {
		next = &rest[0]
	}
	return headsOf(found), next, time.Since(start), false, err
}

// recordGroups records how long a sweep of many queues took. Steps from lane to lane would have taken steps statements
// instead. After a slow sweep, new statistics may make the next one faster.
func (w *LaneFinder) recordGroups(ctx context.Context, took time.Duration, steps int, err error) {
	if err == nil && took <= max(10*slowSweep, 4*time.Duration(steps)*minStepTime) {
		w.slow = 0
		return
	}
	w.store.RefreshStatistics(ctx)
	if w.slow++; w.slow > 1 {
		w.slow, w.apart = 0, time.Now().Add(max(retryInterval, 100*took))
	}
}

// record records how long a sweep took and how many lanes it found, and decides how to
// do the next one.
func (s *sweepStrategy) record(d time.Duration, lanes int, now time.Time) {
	slow := d > max(slowSweep, time.Duration(lanes)*minStepTime)
	due := now.After(s.retryOther)
	change := slow && d > 2*s.otherTook
	switch {
	case s.trial:
		change = d > s.otherTook
		s.retryOther = now.Add(max(retryInterval, 100*max(d, s.otherTook)))
	case s.oneStatement:
		// A single sweep may be slow because the machine is busy. Steps would be many statements in each poll.
		change = (change || slow && due) && (s.wasSlow || d > 10*slowSweep)
		s.wasSlow = slow && !change
	default:
		change = (change || due) && lanes > fewLanes
	}
	s.trial = change && !s.trial
	if change {
		s.oneStatement, s.otherTook = !s.oneStatement, d
	}
}
