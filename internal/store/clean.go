package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Clean deletes up to MaxBatch tasks of a queue and a final state that finished
// longer than retention ago, with their recorded attempts. It returns the number of
// tasks deleted.
func (s *Store) Clean(ctx context.Context, queue, state string, retention time.Duration) (n int, err error) {
	find := s.fixed("clean", statements.Clean)
	values := statements.Values{"queue": queue, "state": state, "keep": retention.Microseconds(), "limit": MaxBatch}
	err = s.inTx(ctx, func(x runner) error {
		ids, err := int64s(ctx, x, find, values, nil)
		if n = len(ids); err != nil || n == 0 {
			return err
		}
		var k Key
		rows := statements.IDColumns.Rows(n, func(i int) *Key { k.TaskID = ids[i]; return &k })
		if _, err := x.exec(ctx, s.batch("drop", n, statements.Drop), nil, rows); err != nil {
			return err
		}
		_, err = x.exec(ctx, s.batch("forget", n, statements.Forget), nil, rows)
		return err
	})
	return n, err
}
