package store

import (
	"context"
	"math"

	"github.com/falldue/falldue/internal/statements"
)

const (
	// firstParts is the number of parts into which the ids are split at first.
	firstParts = 64
	// idParts is about the number of parts after the next split, in proportion to the tasks. Each further
	// split doubles the number, up to mostIDParts, unless the estimate settles before.
	idParts, mostIDParts = 320, 5120
	// An estimate has settled when a split changes it by no more than the part settledBy.
	settledBy = 0.1
	// readTasks is the number of tasks that are read in each part, the first ones.
	readTasks = 50
)

// earliest and latest are before and after all anchors.
const earliest, latest = int64(0), int64(250_000_000_000_000_000)

// fewTasks is the number up to which all tasks are counted, since an estimate would take as long.
// Tests lower it.
var fewTasks int64 = 2 * (firstParts + idParts) * readTasks

// idRange is a range of ids, with the tasks that were seen in it. Each of these tasks stands for
// scale tasks.
type idRange struct {
	statements.IDRange
	seen           map[group]int64
	scale          float64
	n, first, last int64 // of the tasks that were seen
}

func (r idRange) tasks() (n float64) {
	for _, seen := range r.seen {
		n += float64(seen) * r.scale
	}
	return n
}

// tasksIn returns about how many tasks there are in ranges.
func tasksIn(ranges []idRange) (n float64) {
	for _, r := range ranges {
		n += r.tasks()
	}
	return n
}

// estimateByIDs counts the first tasks in ranges of ids. Since ids may be close together in several
// places that are far apart, it splits ranges with many tasks until the estimate settles. Then it counts
// small groups through their lanes.
func (s *Store) estimateByIDs(ctx context.Context, lanes []statements.QueueLane) ([]Count, error) {
	few, err := s.fewTasks(ctx)
	if err != nil {
		return nil, err
	}
	if few {
		return s.Counts(ctx)
	}
	whole, err := s.span(ctx, idRange{IDRange: statements.IDRange{Until: math.MaxInt64}})
	if err != nil {
		return nil, err
	}
	ranges, err := s.readFirst(ctx, splitIDs(whole, firstParts))
	for most, before := idParts, math.Inf(1); err == nil && most <= mostIDParts && math.Abs(before-tasksIn(ranges)) > settledBy*tasksIn(ranges); most *= 2 {
		before = tasksIn(ranges)
		ranges, err = s.splitBigIDs(ctx, ranges, most)
	}
	if err != nil {
		return nil, err
	}
	counts, seen := map[group]Count{}, map[group]int64{}
	for _, r := range ranges {
		for g, n := range r.seen {
			c := counts[g]
			counts[g] = Count{Queue: g.queue, Kind: g.kind, State: g.state, Tasks: c.Tasks + int64(float64(n)*r.scale), Estimated: c.Estimated || r.scale > 1}
			seen[g] += n
		}
	}
	err = s.countSmall(lanes, seen, counts, func(lanes []statements.QueueLane, add func(Count)) error { return s.countEach(ctx, lanes, add) })
	return sortedCounts(counts), err
}

// fewTasks reports whether there are at most fewTasks.
func (s *Store) fewTasks(ctx context.Context) (bool, error) {
	var n int64
	err := s.read(ctx, s.fixed("count first", statements.CountFirst), statements.Values{"limit": fewTasks + 1}, func() {}, func(r row) (err error) {
		n, err = r.int(0)
		return err
	})
	return n <= fewTasks, err
}

// span returns a range without the ids before its first task and after its last.
func (s *Store) span(ctx context.Context, r idRange) (idRange, error) {
	list := []idRange{r}
	err := s.spans(ctx, list)
	return list[0], err
}

// spans is span for many ranges.
func (s *Store) spans(ctx context.Context, ranges []idRange) error {
	return united(ctx, s, "id spans", statements.IDRangeColumns, boundsOf(ranges), nil, statements.IDSpans, func(int) {}, func(i int, found row) (err error) {
		if ranges[i].Since, err = found.int(0); err == nil {
			ranges[i].Until, err = found.int(1)
		}
		return err
	})
}

func boundsOf(ranges []idRange) (list []statements.IDRange) {
	for _, r := range ranges {
		list = append(list, r.IDRange)
	}
	return list
}

// readFirst reads the first tasks of each range.
func (s *Store) readFirst(ctx context.Context, ranges []idRange) ([]idRange, error) {
	err := united(ctx, s, "sample ids", statements.IDRangeColumns, boundsOf(ranges), statements.Values{"limit": readTasks}, statements.SampleIDs, func(i int) {
		r := &ranges[i]
		r.seen, r.scale, r.n, r.first, r.last = map[group]int64{}, 1, 0, r.Until, 0
	}, func(i int, row row) error {
		r := &ranges[i]
		var c statements.Sampled
		err := statements.SampledColumns.Scan(row, &c)
		r.seen[groupOf(c.Count)] += c.Tasks
		r.n, r.first, r.last = r.n+c.Tasks, min(r.first, c.First), max(r.last, c.Last)
		return err
	})
	if err != nil {
		return nil, err
	}
	// A range may begin long before its first task, and end long after its last. Tasks may have been deleted in the
	// meantime.
	var full []int
	var rests []idRange
	for i, r := range ranges {
		if r.n == readTasks {
			full, rests = append(full, i), append(rests, r)
		}
	}
	if err := s.spans(ctx, rests); err != nil {
		return nil, err
	}
	for n, i := range full {
		r := &ranges[i]
		r.Since, r.Until = r.first, max(rests[n].Until, r.last+1)
		r.scale = float64(r.Until-r.Since) / float64(r.last+1-r.Since)
	}
	return ranges, nil
}

// splitBigIDs splits the ranges with many tasks into about most parts, and reads the first tasks of these.
func (s *Store) splitBigIDs(ctx context.Context, ranges []idRange, most int) ([]idRange, error) {
	all := 1 + tasksIn(ranges)
	var kept, parts []idRange
	for _, r := range ranges {
		if n := int64(float64(most) * r.tasks() / all); n > 1 && r.scale > 1 {
			parts = append(parts, splitIDs(r, min(n, splits))...)
		} else {
			kept = append(kept, r)
		}
	}
	parts, err := s.readFirst(ctx, parts)
	return append(kept, parts...), err
}

// splitIDs splits a range into n parts of the same length, or into fewer if it is too short.
func splitIDs(r idRange, n int64) (parts []idRange) {
	length := max((r.Until-r.Since)/n, readTasks)
	for since := r.Since; since < r.Until; since += length {
		parts = append(parts, idRange{IDRange: statements.IDRange{Since: since, Until: min(since+length, r.Until)}})
	}
	return parts
}

// countEach counts the tasks of lanes, one lane after the other.
func (s *Store) countEach(ctx context.Context, lanes []statements.QueueLane, add func(Count)) error {
	for _, l := range lanes {
		n, err := s.countRange(ctx, statements.LaneRange{QueueLane: l, Since: earliest, Until: latest}, countedRows)
		if err != nil {
			return err
		}
		add(Count{Queue: l.Queue, Kind: l.Kind, State: l.State, Tasks: n})
	}
	return nil
}

// lanesByQueue returns the lanes of all queues and states, or nil if there are more than
// maxEstimatedLanes.
func (s *Store) lanesByQueue(ctx context.Context) (lanes []statements.QueueLane, err error) {
	queues, err := s.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, queue := range queues {
		heads, more, err := s.waitingLanes(ctx, queue, maxEstimatedLanes-len(lanes))
		for _, state := range []string{statements.StateDone, statements.StateDead, statements.StateCancelled} {
			if err != nil || more {
				return nil, err
			}
			var finished []Head
			finished, err = s.FinishedLanes(ctx, queue, state)
			heads = append(heads, finished...)
			more = len(lanes)+len(heads) > maxEstimatedLanes
		}
		if err != nil || more {
			return nil, err
		}
		for _, h := range heads {
			if h.Corrupt == nil {
				lanes = append(lanes, statements.QueueLane{Queue: queue, Lane: h.Lane})
			}
		}
	}
	return lanes, nil
}

// waitingLanes returns the lanes of a queue that have waiting tasks, and reports whether there are more than most.
func (s *Store) waitingLanes(ctx context.Context, queue string, most int) (_ []Head, more bool, err error) {
	if s.server.Caps.LooseScan {
		heads, rest, err := s.sweepBySteps(ctx, FirstPlace(queue), most+1)
		return heads, rest != nil, err
	}
	found, rest, err := s.Sweep(ctx, []Place{FirstPlace(queue)}, most+1)
	return headsOf(found), len(rest) > 0, err
}
