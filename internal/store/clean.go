package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Clean deletes up to MaxBatch tasks of a queue and a final state that finished
// longer than retention ago, with their recorded attempts. It returns the number of
// tasks deleted.
func (s *Store) Clean(ctx context.Context, queue, state string, retention time.Duration) (int, error) {
	find := s.fixed("clean", statements.Clean)
	values := statements.Values{"queue": queue, "state": state, "keep": retention.Microseconds(), "limit": MaxBatch}
	return inTx(ctx, s, func(x runner) (int, error) {
		ids, err := int64s(ctx, x, find, values, nil)
		n := len(ids)
		if err != nil || n == 0 {
			return 0, err
		}
		keys := make([]Key, n)
		for i, id := range ids {
			keys[i].TaskID = id
		}
		rows := statements.IDColumns.Rows(n, func(i int) *Key { return &keys[i] })
		if _, err := x.exec(ctx, s.batch("drop", n, statements.Drop), nil, rows); err != nil {
			return 0, err
		}
		_, err = x.exec(ctx, s.batch("forget", n, statements.Forget), nil, rows)
		return n, err
	})
}
