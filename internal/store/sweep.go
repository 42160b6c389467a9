package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Head is the head of a lane: its first task's anchor, and the database's now.
type Head struct {
	statements.Head
	Corrupt error // what is wrong with a lane whose columns hold no numbers
}

// Sweep finds the lanes of a queue by one statement.
func (s *Store) Sweep(ctx context.Context, queue string) ([]Head, error) {
	return s.heads(ctx, s.fixed("sweep", statements.Sweep), statements.Values{"queue": queue})
}

// SweepBySteps finds one lane after the other, by a statement each, which no
// guess of a planner can slow down. It reports whether there are more lanes than
// most.
func (s *Store) SweepBySteps(ctx context.Context, queue string, most int) (heads []Head, more bool, err error) {
	stmt := s.fixed("next lane", statements.NextLane)
	var last Lane // without a state, it sorts before all others
	begin := time.Now()
	for len(heads) <= most {
		since := time.Since(begin)
		values := statements.Values{"queue": queue}
		statements.SetLane(values, last)
		next, err := s.heads(ctx, stmt, values)
		heads = append(heads, next...)
		if err != nil || len(next) == 0 || next[0].Corrupt != nil {
			return heads, false, err
		}
		heads[len(heads)-1].Now -= since.Microseconds() // as if one statement had found all
		last = next[0].Lane
	}
	return heads, true, nil
}

// heads runs a statement that finds lanes.
func (s *Store) heads(ctx context.Context, stmt statements.Stmt, values statements.Values) (heads []Head, err error) {
	err = s.read(ctx, stmt, values, func() { heads = heads[:0] }, func(r row) error {
		var h Head
		h.Corrupt = statements.HeadColumns.Scan(r, &h.Head) // what can be read of it is read
		heads = append(heads, h)
		return nil
	})
	return heads, err
}

// refreshEvery is how often the server is made to refresh its statistics at the
// most.
const refreshEvery = 10 * time.Second

// RefreshStatistics makes the server read its statistics again, on engines that
// otherwise go by those of when they opened the table. It reports whether it did:
// not where that was done lately.
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
	return unprepared{s.db}.query(ctx, statements.RefreshStatistics(s.server, s.tables), nil, nil, func(row) error { return nil }) == nil
}
