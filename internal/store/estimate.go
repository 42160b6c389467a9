package store

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// group identifies tasks that are counted together.
type group struct{ queue, kind, state string }

func groupOf(c Count) group { return group{c.Queue, c.Kind, c.State} }

// maxEstimatedLanes is the number of lanes up to which an estimate reads each lane.
const maxEstimatedLanes = 1000

// EstimateCounts estimates the result of Counts without reading all tasks. Counts that are not
// exact have Estimated set.
func (s *Store) EstimateCounts(ctx context.Context) ([]Count, error) {
	switch s.server.Caps.Catalog {
	case dialect.PgCatalog:
		return s.estimateBySample(ctx)
	case dialect.InnoDBCatalog:
		return s.estimateByRanges(ctx)
	}
	lanes, err := s.lanesByQueue(ctx)
	if err != nil {
		return nil, err
	}
	return s.estimateByIDs(ctx, lanes)
}

const (
	// sampledPages is the number of pages of a sample.
	sampledPages = 700
	// mostSlots is the greatest number of rows of a page of 8 kB.
	mostSlots = 291
	// fewSampled is the number of tasks in a sample below which their group is counted, if
	// that is cheap enough: the error of a sample of 400 is about 5 %.
	fewSampled = 400
	// countedRows is about the number of tasks of small groups that are counted.
	countedRows = 30_000
)

// fewPages is the number of pages up to which all tasks are counted, since a sample would take
// as long. Tests lower it.
var fewPages int64 = 8 * sampledPages

// estimateBySample counts the tasks in a sample of evenly spaced pages. It then counts the tasks
// of small groups through the index.
func (s *Store) estimateBySample(ctx context.Context) (list []Count, err error) {
	var pages, rows int64
	stmt := s.fixed("table pages", func(server dialect.Server, _ dialect.Tables) statements.Stmt { return statements.TablePages(server) })
	err = s.read(ctx, stmt, statements.Values{"table": statements.TableParam(s.server, s.tables)}, func() {}, func(r row) (err error) {
		if pages, err = r.int(0); err == nil {
			rows, err = r.int(1)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if pages <= fewPages {
		return s.Counts(ctx)
	}
	err = s.Retry(ctx, func() error {
		return s.transact(ctx, func(c *conn) error {
			// The server expects much work, and would compile these statements for a second.
			if err := c.execText(ctx, statements.NoJIT); err != nil {
				return err
			}
			list, err = s.sample(ctx, c, pages, rows)
			return err
		})
	})
	return list, err
}

// sample takes a sample of a table. rows is negative if the number of rows is not known.
func (s *Store) sample(ctx context.Context, x runner, pages, rows int64) ([]Count, error) {
	step := pages / sampledPages
	first := rand.Int64N(step)
	taken := (pages-1-first)/step + 1
	slots := int64(mostSlots)
	if rows >= 0 {
		slots = min(2*rows/pages+16, slots) // dead rows have slots too
	}
	counts := map[group]Count{}
	err := readCounts(ctx, x, s.fixed("sample pages", statements.SamplePages), statements.Values{"first": first, "last": pages - 1, "step": step, "slots": slots}, nil, func(c Count) {
		counts[groupOf(c)] = c
	})
	if err != nil {
		return nil, err
	}
	lanes, err := s.allLanes(ctx, x)
	if err != nil {
		return nil, err
	}
	if len(lanes) > maxEstimatedLanes {
		lanes = nil
	}
	seen := map[group]int64{}
	for g, c := range counts {
		seen[g] = c.Tasks
		c.Tasks, c.Estimated = c.Tasks*pages/taken, true
		counts[g] = c
	}
	err = s.countSmall(lanes, seen, counts, func(lanes []statements.QueueLane, add func(Count)) error {
		rows := statements.QueueLaneColumns.Rows(len(lanes), func(i int) *statements.QueueLane { return &lanes[i] })
		return readCounts(ctx, x, s.fixed("count lanes", statements.CountLanes), statements.Values{"limit": countedRows}, rows, add)
	})
	return sortedCounts(counts), err
}

// countSmall replaces estimates with exact counts, for groups with few sampled tasks. It counts
// the smallest groups first, up to about countedRows tasks in all. count counts the tasks of
// some lanes, up to countedRows in each lane.
func (s *Store) countSmall(lanes []statements.QueueLane, seen map[group]int64, counts map[group]Count, count func(lanes []statements.QueueLane, add func(Count)) error) error {
	small := map[group][]statements.QueueLane{}
	for _, l := range lanes {
		if g := (group{l.Queue, l.Kind, l.State}); seen[g] < fewSampled {
			small[g] = append(small[g], l)
		}
	}
	groups := slices.SortedFunc(maps.Keys(small), func(a, b group) int { return cmp.Compare(counts[a].Tasks, counts[b].Tasks) })
	var counted []statements.QueueLane
	left := int64(countedRows)
	for _, g := range groups {
		if left -= counts[g].Tasks; left < 0 {
			break
		}
		counted = append(counted, small[g]...)
	}
	if len(counted) == 0 {
		return nil
	}
	exact := map[group]Count{}
	err := count(counted, func(c Count) {
		g := groupOf(c)
		c.Estimated = c.Tasks == countedRows || exact[g].Estimated // there may be more
		c.Tasks += exact[g].Tasks
		exact[g] = c
	})
	if err == nil {
		maps.Copy(counts, exact)
	}
	return err
}

// allLanes returns the first lanes of all queues and states, one more than maxEstimatedLanes.
func (s *Store) allLanes(ctx context.Context, x runner) (lanes []statements.QueueLane, err error) {
	err = x.query(ctx, s.fixed("all lanes", statements.AllLanes), statements.Values{"limit": maxEstimatedLanes + 1}, nil, func(r row) error {
		lanes = append(lanes, statements.QueueLane{})
		return statements.QueueLaneColumns.Scan(r, &lanes[len(lanes)-1])
	})
	return lanes, err
}

// readCounts runs a statement that counts, and calls f for each count.
func readCounts(ctx context.Context, x runner, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(Count)) error {
	return x.query(ctx, stmt, values, rows, func(r row) error {
		var c Count
		err := statements.CountColumns.Scan(r, &c)
		f(c)
		return err
	})
}

// sortedCounts returns counts in the order of Counts. It leaves out counts of 0.
func sortedCounts(counts map[group]Count) []Count {
	list := slices.DeleteFunc(slices.Collect(maps.Values(counts)), func(c Count) bool { return c.Tasks == 0 })
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.State, b.State))
	})
	return list
}
