package falldue

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// A sweep finds the lanes of a queue. Where the engine's planner decides whether
// its one statement jumps from lane to lane, or reads every task that waits, a
// sweep may take a statement a lane instead, none of which can go wrong.

// head is a lane and its first row's anchor, by the database's clock, and the
// database's now.
type head struct {
	lane
	anchor, now int64 // microseconds since 1970
	unreadable  error // what is wrong with a lane whose columns hold no numbers
}

// Anchors before the first and after the last falldue does not write. A task may
// be for the year 9000, and a policy's jitter may be 100 years. What SQLite makes
// of a text falls on the first day of 1970.
var (
	dawn        = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() // no engine writes earlier moments
	firstAnchor = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastAnchor  = time.Date(9101, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)

// nonsense says what is wrong with a lane that somebody edited, or "".
func (h head) nonsense() string {
	switch {
	case h.unreadable != nil:
		return h.unreadable.Error()
	case h.attempts < 0:
		return "attempts below 0"
	case h.anchor < firstAnchor || h.anchor > lastAnchor:
		return "updated_at out of range"
	}
	return ""
}

// sweep finds the lanes of a queue by one statement.
func (s *store) sweep(ctx context.Context, queue string) ([]head, error) {
	stmt := s.stmt("sweep", 0, func(int) statements.Stmt { return statements.Sweep(s.server, s.tables) })
	return s.heads(ctx, stmt, statements.Values{"queue": queue})
}

// sweepBySteps finds one lane after the other, and tells whether there are more
// than most.
func (s *store) sweepBySteps(ctx context.Context, queue string, most int) (heads []head, more bool, err error) {
	stmt := s.stmt("next lane", 0, func(int) statements.Stmt { return statements.NextLane(s.server, s.tables) })
	var last lane // without a state, it is before all others
	begin := time.Now()
	for len(heads) <= most {
		since := time.Since(begin)
		next, err := s.heads(ctx, stmt, statements.Values{
			"queue": queue, "state": last.state, "priority": last.priority, "kind": last.kind, "policy": last.policy, "attempts": last.attempts,
		})
		heads = append(heads, next...)
		if err != nil || len(next) == 0 || next[0].unreadable != nil {
			return heads, false, err
		}
		heads[len(heads)-1].now -= since.Microseconds() // as if one statement had found all
		last = next[0].lane
	}
	return heads, true, nil
}

// heads runs a statement that finds lanes.
func (s *store) heads(ctx context.Context, stmt statements.Stmt, values statements.Values) (heads []head, err error) {
	err = s.retry(ctx, func() error {
		heads = heads[:0]
		rows, err := pool{s}.rows(ctx, stmt.SQL, stmt.Bind(values, nil))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var h head
			if err := rows.Scan(&h.state, &h.priority, &h.kind, &h.policy, &h.attempts, &h.anchor, &h.now); err != nil {
				// What is wrong with the connection, not with this row, rows.Err says.
				h.unreadable = err
				var priority, attempts any
				_ = rows.Scan(&h.state, &priority, &h.kind, &h.policy, &attempts, &h.anchor, &h.now) // what can be read of it
			}
			heads = append(heads, h)
		}
		return rows.Err()
	})
	return heads, err
}

const (
	// slowSweep is how long no sweep takes that jumps from lane to lane, unless
	// there are very many.
	slowSweep = 10 * time.Millisecond
	// recountEvery is how often the server is made to count its lanes at the most.
	recountEvery = 10 * time.Second
)

// recount has the server count its lanes, on engines where that helps and unless
// it was made to lately, and tells whether it did.
func (s *store) recount(ctx context.Context) bool {
	if !s.server.Caps.CachesStatistics {
		return false
	}
	s.mu.Lock()
	now := time.Now()
	early := now.Before(s.recounts)
	if !early {
		s.recounts = now.Add(recountEvery)
	}
	s.mu.Unlock()
	return !early && plain{s.db}.query(ctx, statements.RefreshStatistics(s.server, s.tables).SQL, nil, func(cells) error { return nil }) == nil
}
