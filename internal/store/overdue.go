package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Queues lists the queues that have tasks, in any state. It jumps from queue to queue
// in the index.
func (s *Store) Queues(ctx context.Context) (list []string, err error) {
	stmt, last := s.fixed("next queue", statements.NextQueue), ""
	for {
		var next []string
		err := s.read(ctx, stmt, statements.Values{"queue": last}, func() { next = nil }, func(r row) error {
			next = append(next, r.text(0))
			return nil
		})
		if err != nil || len(next) == 0 || next[0] == last {
			return list, err
		}
		last = next[0]
		list = append(list, last)
	}
}

// CountSince counts the tasks of a lane whose anchors are at least wait old, up to most.
func (s *Store) CountSince(ctx context.Context, queue string, at Lane, wait time.Duration, most int) (n int, err error) {
	values := statements.Values{"queue": queue, "wait": wait.Microseconds(), "limit": most}
	statements.SetLane(values, at)
	err = s.read(ctx, s.fixed("count since", statements.CountSince), values, func() { n = 0 }, func(r row) error {
		count, err := r.int(0)
		n = int(count)
		return err
	})
	return n, err
}
