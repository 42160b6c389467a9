package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// FinishedLanes finds the lanes of the tasks of a queue that are in a final state. Its
// cost grows with the number of lanes, not of tasks.
func (s *Store) FinishedLanes(ctx context.Context, queue, state string) (heads []Head, err error) {
	stmt, last := s.fixed("finished lanes", statements.FinishedLanes), statements.FirstFinished(state)
	for {
		values := statements.Values{"queue": queue, "state": state}
		statements.SetLane(values, last)
		next, err := s.heads(ctx, stmt, values, nil)
		heads = append(heads, next...)
		if err != nil || !s.server.Caps.LooseScan || len(next) == 0 || next[0].Corrupt != nil {
			return heads, err
		}
		last = next[0].Lane
	}
}

// Clean deletes up to MaxBatch tasks of a lane that finished longer than retention ago,
// the oldest first, with their recorded attempts. It looks from the anchor since on, and
// returns the number of tasks deleted and the anchor of the last one.
func (s *Store) Clean(ctx context.Context, queue string, lane Lane, since int64, retention time.Duration) (n int, last int64, err error) {
	find := s.fixed("clean", statements.Clean)
	values := statements.Values{"queue": queue, "since": since, "keep": retention.Microseconds(), "limit": MaxBatch}
	statements.SetLane(values, lane)
	old, err := inTx(ctx, s, func(x runner) (old []statements.Finished, err error) {
		err = x.query(ctx, find, values, nil, func(r row) error {
			var f statements.Finished
			old = append(old, f)
			return statements.FinishedColumns.Scan(r, &old[len(old)-1])
		})
		if err != nil || len(old) == 0 {
			return nil, err
		}
		rows := statements.IDColumns.Rows(len(old), func(i int) *Key { return &Key{TaskID: old[i].ID} })
		if _, err := x.exec(ctx, s.batch("drop", len(old), statements.Drop), nil, rows); err != nil {
			return nil, err
		}
		_, err = x.exec(ctx, s.batch("forget", len(old), statements.Forget), nil, rows)
		return old, err
	})
	if len(old) > 0 {
		last = old[len(old)-1].Anchor
	}
	return len(old), last, err
}
