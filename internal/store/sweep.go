package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// Head is the head of a lane: the anchor of its first task, and the database's time.
type Head struct {
	statements.Head
	Corrupt error // not nil if columns of the row hold no numbers or no texts
}

// Place is the position from which a search for lanes continues in a queue.
type Place = statements.Place

// FirstPlace is the place before the waiting lanes of a queue.
func FirstPlace(queue string) Place { return statements.FirstPlace(queue) }

// Found is the head of a lane of a queue.
type Found struct {
	Queue string
	Head
}

// Sweep finds up to most lanes behind places in queues, with one statement. It returns the places at which to continue,
// or none after all lanes.
func (s *Store) Sweep(ctx context.Context, places []Place, most int) (found []Found, rest []Place, err error) {
	places = slices.SortedFunc(slices.Values(places), func(a, b Place) int { return strings.Compare(a.Queue, b.Queue) })
	if s.server.Caps.LooseScan {
		return s.sweepByGroups(ctx, places, most)
	}
	found, err = s.lanesBehind(ctx, s.batch("sweep", len(places), statements.Sweep), places, statements.Values{"page": most})
	if err != nil {
		return nil, places, err
	}
	return found, restOf(places, found, most), nil
}

// sweepByGroups is Sweep where the engine groups lanes (Caps.LooseScan). If the first place is behind a lane, it sweeps
// only that queue. If several queues have most lanes or more together, it returns none of them.
func (s *Store) sweepByGroups(ctx context.Context, places []Place, most int) (found []Found, rest []Place, err error) {
	if first := places[0]; isBehindLane(first) {
		values := statements.Values{"queue": first.Queue, "page": most}
		statements.SetLane(values, first.Lane)
		heads, err := s.heads(ctx, s.fixed("next lanes", statements.NextLanes), values, nil)
		if err != nil {
			return nil, places, err
		}
		found = inQueue(first.Queue, heads)
		return found, slices.Concat(restOf(places[:1], found, most), places[1:]), nil
	}
	found, err = s.lanesBehind(ctx, s.batch("sweep", len(places), statements.Sweep), places, statements.Values{"page": most})
	if err != nil || len(places) > 1 && len(found) == most {
		return nil, places, err
	}
	return found, restOf(places, found, most), nil
}

// lanesBehind runs a statement that finds lanes behind places.
func (s *Store) lanesBehind(ctx context.Context, stmt statements.Stmt, places []Place, values statements.Values) (found []Found, err error) {
	rows := statements.PlaceColumns(s.server).Rows(len(places), func(i int) *Place { return &places[i] })
	err = s.readRows(ctx, stmt, values, rows, func() { found = found[:0] }, func(r row) error {
		var f statements.FoundLane
		h := Head{Corrupt: statements.FoundColumns.Scan(r, &f)} // columns that can be read are set nevertheless
		h.Head = f.Head
		if s.spellLane(r, &h); s.server.Caps.PadsText {
			f.Queue = strings.TrimRight(f.Queue, " ")
		}
		found = append(found, Found{f.Queue, h})
		return nil
	})
	return found, err
}

// headsOf returns the heads of lanes without their queues.
func headsOf(found []Found) []Head {
	heads := make([]Head, len(found))
	for i, f := range found {
		heads[i] = f.Head
	}
	return heads
}

// inQueue returns heads of lanes of a queue.
func inQueue(queue string, heads []Head) []Found {
	found := make([]Found, len(heads))
	for i, h := range heads {
		found[i] = Found{queue, h}
	}
	return found
}

// restOf returns the places from which the next part of a sweep continues, after this part has found up to most lanes
// behind sorted places. A lane with unreadable values is no place.
func restOf(places []Place, found []Found, most int) []Place {
	if len(found) < most {
		return nil
	}
	for _, last := range slices.Backward(found) {
		at := slices.IndexFunc(places, func(p Place) bool { return p.Queue == last.Queue })
		if at >= 0 && last.Corrupt == nil && places[at].Lane != last.Lane {
			rest := slices.Clone(places[at:])
			rest[0].Lane = last.Lane
			return rest
		}
	}
	return nil
}

// sweepBySteps finds up to most lanes behind a place one after the other, with a statement for
// each. Stale statistics cannot make these statements slow. sweepBySteps returns the place at which to continue, or nil
// after the last lane.
func (s *Store) sweepBySteps(ctx context.Context, place Place, most int) (heads []Head, rest *Place, err error) {
	stmt := s.fixed("next lane", statements.NextLane)
	begin := time.Now()
	for len(heads) < most {
		since := time.Since(begin)
		values := statements.Values{"queue": place.Queue}
		statements.SetLane(values, place.Lane)
		next, err := s.heads(ctx, stmt, values, nil)
		heads = append(heads, next...)
		if err != nil {
			return heads, &place, err
		}
		if len(next) == 0 || next[0].Corrupt != nil {
			return heads, nil, nil
		}
		heads[len(heads)-1].Now -= since.Microseconds() // as if one statement had found all lanes
		place.Lane = next[0].Lane
	}
	return heads, &place, nil
}

// occupied returns the places of queues that have tasks in a state. State "" stands for all waiting tasks.
func (s *Store) occupied(ctx context.Context, places []Place, state string) (list []Place, err error) {
	name, has := "occupied", map[string]bool{}
	if state != "" {
		name = "occupied in a state"
	}
	stmt := s.batch(name, len(places), func(server dialect.Server, tables dialect.Tables, size int) statements.Stmt {
		return statements.Occupied(server, tables, state == "", size)
	})
	rows := statements.PlaceColumns(s.server).Rows(len(places), func(i int) *Place { return &places[i] })
	err = s.readRows(ctx, stmt, statements.Values{"state": state}, rows, func() { clear(has) }, func(r row) error {
		queue, err := statements.TextIn(r[0])
		has[queue] = true
		return err
	})
	return slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return !has[p.Queue] }), err
}

// MaxRechecked is how many lanes one statement of a recheck reads.
const MaxRechecked = 128

// Recheck finds the first task of each source from its Since on. It leaves out lanes
// without such a task. Its cost does not depend on the number of earlier tasks.
func (s *Store) Recheck(ctx context.Context, queue string, sources []Source) ([]Head, error) {
	return reading(ctx, s, func(x runner) ([]Head, error) { return s.firstTasks(ctx, x, queue, sources) })
}

func (s *Store) firstTasks(ctx context.Context, x runner, queue string, sources []Source) (heads []Head, err error) {
	for part := range slices.Chunk(sources, MaxRechecked) {
		stmt, rows := s.headsStmt(part)
		err := x.query(ctx, stmt, statements.Values{"queue": queue}, rows, func(r row) error {
			place, err := r.int(len(r) - 1)
			if err != nil || place < 0 || int(place) >= len(part) { // of the rows that fill a statement up
				return err
			}
			h := Head{Head: statements.Head{Lane: part[place].Lane}}
			h.Corrupt = statements.AnchorColumns.Scan(r[:len(r)-1], &h.Head)
			heads = append(heads, h)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// headsStmt returns the statement that reads the first tasks of sources, with its rows.
func (s *Store) headsStmt(sources []Source) (statements.Stmt, []statements.Row) {
	size := 0
	if !statements.ClaimsAtOnce(s.server) {
		size = statements.SizeFor(len(sources))
	}
	stmt := s.stmt(stmtKey{name: "heads", size: size}, func() statements.Stmt { return statements.Heads(s.server, s.tables, size) })
	return stmt, statements.SinceColumns.Rows(len(sources), func(i int) *statements.WantedLane {
		return &statements.WantedLane{Lane: sources[i].Lane, Since: sources[i].Since}
	})
}

// heads runs a statement that finds lanes.
func (s *Store) heads(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) (heads []Head, err error) {
	err = s.readRows(ctx, stmt, values, rows, func() { heads = heads[:0] }, func(r row) error {
		var h Head
		h.Corrupt = statements.HeadColumns.Scan(r, &h.Head) // columns that can be read are set nevertheless
		s.spellLane(r, &h)
		heads = append(heads, h)
		return nil
	})
	return heads, err
}

// spellLane makes lanes of a result equal if and only if the engine takes them for one lane. An
// engine that pads texts may name a lane after a row that was edited by hand, with spaces at the
// end of its kind. Where columns have values of any type, a blob is another kind than the text
// with the same bytes. No claim can name a blob, so its lane is corrupt.
func (s *Store) spellLane(r row, h *Head) {
	if s.server.Caps.PadsText {
		h.Key, h.Kind, h.Policy = strings.TrimRight(h.Key, " "), strings.TrimRight(h.Kind, " "), strings.TrimRight(h.Policy, " ")
	}
	if !s.server.Caps.DynamicTypes || h.Corrupt != nil {
		return
	}
	for _, v := range r {
		if b, ok := v.([]byte); ok {
			h.Corrupt = fmt.Errorf("a blob, %.100q, instead of a text", b)
		}
	}
}

// refreshEvery is the shortest time between two refreshes of the server's statistics.
const refreshEvery = 10 * time.Second

// RefreshStatistics makes the server refresh its statistics, on engines that otherwise
// keep those from when they opened the table. It does nothing if it ran less than
// refreshEvery ago. It reports whether the statistics were refreshed.
func (s *Store) RefreshStatistics(ctx context.Context) bool {
	if !s.server.Caps.CachesStatistics {
		return false
	}
	s.mu.Lock()
	now := time.Now()
	early := now.Sub(s.refreshed) < refreshEvery
	if !early {
		s.refreshed = now
	}
	s.mu.Unlock()
	if early {
		return false
	}
	return s.seldom(ctx, statements.RefreshStatistics(s.server, s.tables), nil, nil, func(row) error { return nil }) == nil
}
