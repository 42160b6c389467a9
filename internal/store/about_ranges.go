package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

const (
	// exactRange is the number of tasks up to which InnoDB counts what is in a range for
	// certain. Beyond ten pages it reads those, multiplies, and doubles the result, up to half of
	// the table. So what it has counted is below doubledRange, and the other numbers are above.
	exactRange, doubledRange = 500, 2000
	// countedRange is the number up to which the tasks of a range are counted instead, as long
	// as these are not more than countedRows in all.
	countedRange = 20_000
	// calibrated is the number of tasks of which it is found out by how much InnoDB is wrong.
	calibrated, calibratedLanes = 10_000, 6
	// rangesAtOnce is the number of ranges of which a statement asks for the plans.
	rangesAtOnce = 64
	// splits is into how many parts the range of a lane is split that is not counted, unless
	// they would have less than partTasks. The more parts, the more pages are read.
	splits, partTasks = 16, 6_000
	// bigShare of all tasks is what a part has at most that is not split again, mostSplits
	// times.
	bigShare, mostSplits = 0.15, 3
)

// earliest and latest are before and after all anchors.
const earliest, latest = int64(0), int64(250_000_000_000_000_000)

// aboutByRanges adds up how many entries of the index the optimizer expects in the ranges of
// the lanes. It counts a part of some lanes to correct these numbers.
func (s *Store) aboutByRanges(ctx context.Context) ([]Count, error) {
	lanes, err := s.lanesByQueue(ctx)
	if err != nil {
		return nil, err
	}
	if len(lanes) > maxAboutLanes {
		return s.Counts(ctx)
	}
	ranges := make([]statements.LaneRange, len(lanes))
	for i, l := range lanes {
		ranges[i] = statements.LaneRange{QueueLane: l, Since: earliest, Until: latest}
	}
	expected, err := s.expected(ctx, ranges)
	if err != nil {
		return nil, err
	}
	counts := map[group]Count{}
	add := func(r statements.LaneRange, n int64, about bool) {
		g := group{r.Queue, r.Kind, r.State}
		c := counts[g]
		counts[g] = Count{Queue: g.queue, Kind: g.kind, State: g.state, Tasks: c.Tasks + n, About: c.About || about}
	}
	if ranges, expected, err = s.countRanges(ctx, ranges, expected, add); err != nil || len(ranges) == 0 {
		return sortedCounts(counts), err
	}
	factor, err := s.calibrate(ctx, ranges, expected)
	if err != nil {
		return nil, err
	}
	if ranges, expected, err = s.splitBig(ctx, ranges, expected); err != nil {
		return nil, err
	}
	for i, r := range ranges {
		if n := expected[i]; n <= doubledRange {
			add(r, n, true)
		} else {
			add(r, int64(float64(n)*factor), true)
		}
	}
	return sortedCounts(counts), nil
}

// lanesByQueue returns the lanes of all queues and states, by steps, until there are more than
// maxAboutLanes.
func (s *Store) lanesByQueue(ctx context.Context) (lanes []statements.QueueLane, err error) {
	queues, err := s.Queues(ctx)
	for _, queue := range queues {
		heads, _, failed := s.SweepBySteps(ctx, queue, maxAboutLanes-len(lanes))
		for _, state := range []string{statements.StateDone, statements.StateDead, statements.StateCancelled} {
			if failed == nil && len(lanes)+len(heads) <= maxAboutLanes {
				var finished []Head
				finished, failed = s.FinishedLanes(ctx, queue, state)
				heads = append(heads, finished...)
			}
		}
		if failed != nil {
			return nil, failed
		}
		for _, h := range heads {
			if h.Corrupt == nil {
				lanes = append(lanes, statements.QueueLane{Queue: queue, Lane: h.Lane})
			}
		}
		if len(lanes) > maxAboutLanes {
			break
		}
	}
	return lanes, err
}

// expected returns how many tasks the optimizer expects in ranges.
func (s *Store) expected(ctx context.Context, ranges []statements.LaneRange) (list []int64, err error) {
	for part := range slices.Chunk(ranges, rangesAtOnce) {
		rows := statements.LaneRangeColumns.Rows(len(part), func(i int) *statements.LaneRange { return &part[i] })
		stmt := statements.Explain(s.server, s.batch("lane ranges", len(part), statements.LaneRanges))
		var found []int64
		if err := s.seldom(ctx, stmt, nil, rows, func(r row) error {
			// The columns end with rows, filtered and Extra, or rows and Extra.
			n, err := r.int(len(r) - 2)
			if len(r) > 10 {
				n, err = r.int(len(r) - 3)
			}
			if err != nil {
				n = 0 // there is nothing in the range
			}
			found = append(found, n)
			return nil
		}); err != nil {
			return nil, err
		}
		list = append(list, append(found, make([]int64, len(part))...)[:len(part)]...)
	}
	return list, nil
}

// calibrate returns by what to multiply the numbers of ranges that InnoDB does not count. It
// looks where the first tasks of some big lanes end.
func (s *Store) calibrate(ctx context.Context, ranges []statements.LaneRange, expected []int64) (factor float64, err error) {
	var parts []statements.LaneRange
	var counted []int64
	for i, r := range ranges {
		if len(parts) == calibratedLanes {
			break
		}
		if expected[i] <= 3*calibrated {
			continue
		}
		end, err := s.anchorAt(ctx, "lane cut", statements.LaneCut, r.QueueLane, calibrated)
		if err != nil {
			return 0, err
		}
		r.Until = end + 1
		n, err := s.countBefore(ctx, r) // others may have the same anchor
		if err != nil {
			return 0, err
		}
		if end > 0 && n < 3*calibrated {
			parts, counted = append(parts, r), append(counted, n)
		}
	}
	if len(parts) == 0 {
		return 0.5, nil // InnoDB doubles what it has computed
	}
	found, err := s.expected(ctx, parts)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i, n := range found {
		sum += float64(counted[i]) / math.Max(float64(n), 1)
	}
	return min(sum/float64(len(parts)), 2), nil
}

// countRanges counts the lanes that InnoDB does not count, the smallest first, as long as that
// is cheap. It adds what is known exactly, and returns the other ranges.
func (s *Store) countRanges(ctx context.Context, ranges []statements.LaneRange, expected []int64, add func(r statements.LaneRange, n int64, about bool)) (rest []statements.LaneRange, left []int64, err error) {
	places := make([]int, len(ranges))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(expected[a], expected[b]) })
	budget := int64(countedRows)
	for _, i := range places {
		n := expected[i]
		switch {
		case n <= exactRange:
			add(ranges[i], n, false)
			continue
		case n > countedRange || budget < 0:
			rest, left = append(rest, ranges[i]), append(left, n)
			continue
		}
		exact, err := s.CountSince(ctx, ranges[i].Queue, ranges[i].Lane, -100*365*24*time.Hour, countedRange)
		if err != nil {
			return nil, nil, err
		}
		add(ranges[i], int64(exact), exact == countedRange)
		budget -= int64(exact)
	}
	return rest, left, nil
}

// countBefore counts the tasks in a range from the beginning of a lane, up to 3 * calibrated.
func (s *Store) countBefore(ctx context.Context, r statements.LaneRange) (n int64, err error) {
	values := statements.Values{"queue": r.Queue, "until": r.Until, "limit": 3 * calibrated}
	statements.SetLane(values, r.Lane)
	err = s.read(ctx, s.fixed("count before", statements.CountBefore), values, func() { n = 0 }, func(r row) (err error) {
		n, err = r.int(0)
		return err
	})
	return n, err
}

// splitBig splits the ranges that have a big share of all tasks, since InnoDB expects no more
// than half of the table in any.
func (s *Store) splitBig(ctx context.Context, ranges []statements.LaneRange, expected []int64) ([]statements.LaneRange, []int64, error) {
	for try := range mostSplits {
		var all int64
		for _, n := range expected {
			all += n
		}
		var kept, parts []statements.LaneRange
		var known []int64
		for i, r := range ranges {
			if expected[i] < 2*partTasks || try > 0 && float64(expected[i]) < bigShare*float64(all) {
				kept, known = append(kept, r), append(known, expected[i])
				continue
			}
			split, err := s.split(ctx, r, min(expected[i]/partTasks, splits))
			if err != nil {
				return nil, nil, err
			}
			parts = append(parts, split...)
		}
		if len(parts) == 0 {
			break
		}
		more, err := s.expected(ctx, parts)
		if err != nil {
			return nil, nil, err
		}
		ranges, expected = slices.Concat(kept, parts), slices.Concat(known, more)
	}
	return ranges, expected, nil
}

// split splits a range into so many parts that are equally long.
func (s *Store) split(ctx context.Context, r statements.LaneRange, splits int64) (parts []statements.LaneRange, err error) {
	if r.Since == earliest {
		if r.Since, err = s.anchorAt(ctx, "lane cut", statements.LaneCut, r.QueueLane, 0); err != nil {
			return nil, err
		}
	}
	if r.Until == latest {
		if r.Until, err = s.anchorAt(ctx, "lane end", statements.LaneEnd, r.QueueLane, 0); err != nil {
			return nil, err
		}
		r.Until++
	}
	length := (r.Until - r.Since) / splits
	if length <= 0 {
		return []statements.LaneRange{r}, nil
	}
	for i := range splits {
		part := r
		part.Since = r.Since + i*length
		if i < splits-1 {
			part.Until = part.Since + length
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// anchorAt returns the anchor of a task of a lane, or 0 if it has not as many.
func (s *Store) anchorAt(ctx context.Context, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, at statements.QueueLane, skip int) (anchor int64, err error) {
	values := statements.Values{"queue": at.Queue, "skip": skip}
	statements.SetLane(values, at.Lane)
	err = s.read(ctx, s.fixed(name, make), values, func() { anchor = 0 }, func(r row) (err error) {
		anchor, err = r.int(0)
		return err
	})
	return anchor, err
}
