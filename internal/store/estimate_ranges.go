package store

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/falldue/falldue/internal/statements"
)

const (
	// exactRange is the number of tasks up to which InnoDB certainly counts a range. Of a range with
	// more than ten pages, it reads ten pages, multiplies, and doubles the result, up to half of the
	// table. So numbers that it has counted are below doubledRange, and others are above.
	exactRange, doubledRange = 500, 2000
	// countedRange is the number up to which falldue counts the tasks of a range itself, until it
	// has counted countedRows in all.
	countedRange = 20_000
	// sampleTasks is about the number of tasks in a part of a range that is counted to measure
	// the error of InnoDB. Up to mostSamples parts are counted, until they have sampledTasks in all.
	sampleTasks, mostSamples, sampledTasks = 10_000, 20, 50_000
	// rangesAtOnce is the number of ranges in one explained statement.
	rangesAtOnce = 64
	// allParts is about the number of parts into which the ranges are split, in proportion to
	// their expected tasks: mostSplits times, each time into splits parts at most. The more parts,
	// the more pages are read.
	allParts, splits, mostSplits = 256, 16, 3
)

// estimateByRanges adds up how many entries of the index the optimizer expects in the ranges of
// the lanes. It counts parts of some ranges to correct these numbers.
func (s *Store) estimateByRanges(ctx context.Context) ([]Count, error) {
	ranges, err := s.laneEnds(ctx)
	if err != nil {
		return nil, err
	}
	if len(ranges) > maxEstimatedLanes {
		return s.estimateByIDs(ctx, nil)
	}
	expected, err := s.expected(ctx, ranges)
	if err != nil {
		return nil, err
	}
	counts := map[group]Count{}
	add := func(r statements.LaneRange, n int64, estimated bool) {
		g := group{r.Queue, r.Kind, r.State}
		c := counts[g]
		counts[g] = Count{Queue: g.queue, Kind: g.kind, State: g.state, Tasks: c.Tasks + n, Estimated: c.Estimated || estimated}
	}
	var found calibration
	if ranges, expected, err = s.countRanges(ctx, ranges, expected, add, &found); err != nil || len(ranges) == 0 {
		return sortedCounts(counts), err
	}
	if ranges, expected, err = s.splitBig(ctx, ranges, expected); err != nil {
		return nil, err
	}
	if err := s.calibrate(ctx, ranges, expected, &found); err != nil {
		return nil, err
	}
	factor := found.factor()
	for i, r := range ranges {
		if n := expected[i]; n <= doubledRange {
			add(r, n, true)
		} else {
			add(r, int64(float64(n)*factor), true)
		}
	}
	return sortedCounts(counts), nil
}

// laneEnds returns the first lanes of all queues and states, one more than maxEstimatedLanes, from
// their first tasks to their last.
func (s *Store) laneEnds(ctx context.Context) (ranges []statements.LaneRange, err error) {
	err = s.read(ctx, s.fixed("lane ends", statements.LaneEnds), statements.Values{"limit": maxEstimatedLanes + 1}, func() { ranges = nil }, func(r row) error {
		ranges = append(ranges, statements.LaneRange{})
		return statements.LaneRangeColumns.Scan(r, &ranges[len(ranges)-1])
	})
	return ranges, err
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

// calibration has the number of counted tasks in ranges that InnoDB does not count, and the
// number that InnoDB expected there.
type calibration struct{ counted, expected int64 }

func (c *calibration) add(counted, expected int64) {
	if counted > 2*doubledRange && expected > 2*doubledRange {
		c.counted, c.expected = c.counted+counted, c.expected+expected
	}
}

// factor returns the factor for the numbers that InnoDB expects.
func (c *calibration) factor() float64 {
	if c.counted == 0 {
		return 0.5 // InnoDB doubles its result
	}
	return min(float64(c.counted)/float64(c.expected), 2)
}

// calibrate counts the tasks in parts of some ranges, which are chosen at random.
func (s *Store) calibrate(ctx context.Context, ranges []statements.LaneRange, expected []int64, found *calibration) error {
	var parts []statements.LaneRange
	var counted []int64
	left := int64(sampledTasks) - found.counted
	for _, i := range rand.Perm(len(ranges))[:min(len(ranges), mostSamples)] {
		if left <= 0 {
			break
		}
		among := split(ranges[i], expected[i]/(2*sampleTasks))
		part := among[rand.IntN(len(among))]
		n, err := s.countRange(ctx, part, 2*sampleTasks)
		if err != nil {
			return err
		}
		left -= n
		if n < 2*sampleTasks { // the part has no more tasks
			parts, counted = append(parts, part), append(counted, n)
		}
	}
	more, err := s.expected(ctx, parts)
	for i, n := range more {
		found.add(counted[i], n)
	}
	return err
}

// countRanges counts the lanes that InnoDB does not count, the smallest first, as long as that
// is cheap. It adds the counted ranges, and returns the others.
func (s *Store) countRanges(ctx context.Context, ranges []statements.LaneRange, expected []int64, add func(r statements.LaneRange, n int64, estimated bool), found *calibration) (rest []statements.LaneRange, left []int64, err error) {
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
		exact, err := s.countRange(ctx, ranges[i], countedRange)
		if err != nil {
			return nil, nil, err
		}
		add(ranges[i], exact, exact == countedRange)
		if exact < countedRange {
			found.add(exact, n)
		}
		budget -= exact
	}
	return rest, left, nil
}

// countRange counts the tasks in a range, up to most.
func (s *Store) countRange(ctx context.Context, r statements.LaneRange, most int64) (n int64, err error) {
	values := statements.Values{"queue": r.Queue, "since": r.Since, "until": r.Until, "limit": most}
	statements.SetLane(values, r.Lane)
	err = s.read(ctx, s.fixed("count range", statements.CountRange), values, func() { n = 0 }, func(r row) (err error) {
		n, err = r.int(0)
		return err
	})
	return n, err
}

// splitBig splits the ranges with many tasks. InnoDB expects no more than half of the table in
// any range, and the errors of many parts cancel each other out.
func (s *Store) splitBig(ctx context.Context, ranges []statements.LaneRange, expected []int64) ([]statements.LaneRange, []int64, error) {
	for range mostSplits {
		all := int64(1)
		for _, n := range expected {
			all += n
		}
		var kept, parts []statements.LaneRange
		var known []int64
		for i, r := range ranges {
			if among := split(r, min(allParts*expected[i]/all, splits)); len(among) > 1 {
				parts = append(parts, among...)
			} else {
				kept, known = append(kept, r), append(known, expected[i])
			}
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

// split splits a range into n parts of the same length, or into one if it is too short.
func split(r statements.LaneRange, n int64) (parts []statements.LaneRange) {
	length := (r.Until - r.Since) / max(n, 1)
	if length <= 0 {
		return []statements.LaneRange{r}
	}
	for i := range max(n, 1) {
		part := r
		part.Since = r.Since + i*length
		if i < n-1 {
			part.Until = part.Since + length
		}
		parts = append(parts, part)
	}
	return parts
}
