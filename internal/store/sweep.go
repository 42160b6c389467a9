package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Head is the head of a lane: the anchor of its first task, and the database's time.
type Head struct {
	statements.Head
	Corrupt error // not nil if columns of the row hold no numbers or no texts
}

// Sweep finds the lanes of a queue with one statement.
func (s *Store) Sweep(ctx context.Context, queue string) ([]Head, error) {
	return s.heads(ctx, s.fixed("sweep", statements.Sweep), statements.Values{"queue": queue}, nil)
}

// SweepBySteps finds the lanes of a queue one after the other, with a statement for
// each, which stale statistics cannot make slow. It stops and reports true if there are
// more than most lanes.
func (s *Store) SweepBySteps(ctx context.Context, queue string, most int) (heads []Head, more bool, err error) {
	stmt := s.fixed("next lane", statements.NextLane)
	var last Lane // its empty state sorts before all others
	begin := time.Now()
	for len(heads) <= most {
		since := time.Since(begin)
		values := statements.Values{"queue": queue}
		statements.SetLane(values, last)
		next, err := s.heads(ctx, stmt, values, nil)
		heads = append(heads, next...)
		if err != nil || len(next) == 0 || next[0].Corrupt != nil {
			return heads, false, err
		}
		heads[len(heads)-1].Now -= since.Microseconds() // as if one statement had found all lanes
		last = next[0].Lane
	}
	return heads, true, nil
}

// Recheck finds the first task of each source from its since on. It leaves out lanes
// that hold none. It costs the same however many tasks were before.
func (s *Store) Recheck(ctx context.Context, queue string, sources []Source) (heads []Head, err error) {
	if len(sources) == 0 {
		return nil, nil
	}
	if statements.ClaimsAtOnce(s.server) {
		stmt, values, lanes := s.headsStmt(queue, sources)
		return s.heads(ctx, stmt, values, lanes)
	}
	for _, w := range sources {
		stmt, values := s.laneHeadStmt(queue, w)
		head, err := s.heads(ctx, stmt, values, nil)
		if err != nil {
			return nil, err
		}
		heads = append(heads, head...)
	}
	return heads, nil
}

// headsStmt returns the statement that looks into all sources, with its values and its rows.
func (s *Store) headsStmt(queue string, sources []Source) (statements.Stmt, statements.Values, []statements.Row) {
	lanes := statements.SinceColumns.Rows(len(sources), func(i int) *statements.WantedLane {
		return &statements.WantedLane{Lane: sources[i].Lane, Since: sources[i].Since}
	})
	return s.fixed("heads", statements.Heads), statements.Values{"queue": queue}, lanes
}

// laneHeadStmt returns the statement that looks into one source, with its values.
func (s *Store) laneHeadStmt(queue string, w Source) (statements.Stmt, statements.Values) {
	values := statements.Values{"queue": queue, "since": w.Since}
	statements.SetLane(values, w.Lane)
	return s.fixed("lane head", statements.LaneHead), values
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

// spellLane makes equal lanes of a result those that the engine takes for one, and only
// those. An engine that pads texts may name a lane after a row that somebody has edited,
// with spaces at the end of its kind. Where columns have values of any type, a blob is
// another kind than the text of the same bytes, and no claim can name it.
func (s *Store) spellLane(r row, h *Head) {
	if s.server.Caps.PadsText {
		h.Key, h.Kind, h.Policy = strings.TrimRight(h.Key, " "), strings.TrimRight(h.Kind, " "), strings.TrimRight(h.Policy, " ")
	}
	if !s.server.Caps.DynamicTypes || h.Corrupt != nil {
		return
	}
	for _, v := range r {
		if b, ok := v.([]byte); ok {
			h.Corrupt = fmt.Errorf("a blob, %.100q, in place of a text", b)
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
