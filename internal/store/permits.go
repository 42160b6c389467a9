package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// DropPermits deletes those of the next permits after one that have been free for keep, and
// returns the last one that it looked at, or 0 after all. It looks at up to MaxBatch. Claims
// make again what they need.
func (s *Store) DropPermits(ctx context.Context, after int64, keep time.Duration) (last int64, err error) {
	values := statements.Values{"after": after, "keep": keep.Microseconds(), "limit": MaxBatch}
	var page []statements.PagedPermit
	err = s.read(ctx, s.fixed("permit page", statements.PermitPage), values, func() { page = nil }, func(r row) error {
		page = append(page, statements.PagedPermit{})
		return statements.PagedPermitColumns.Scan(r, &page[len(page)-1])
	})
	if err != nil {
		return after, err
	}
	var free []*Key
	for _, p := range page {
		if p.Free != 0 {
			free = append(free, &Key{TaskID: p.ID})
		}
	}
	if len(free) > 0 {
		rows := statements.IDColumns.Rows(len(free), func(i int) *Key { return free[i] })
		_, err = inTx(ctx, s, func(x runner) (struct{}, error) {
			_, err := x.exec(ctx, s.batch("drop permits", len(free), statements.DropPermits), values, rows)
			return struct{}{}, err
		})
	}
	if err != nil || len(page) < MaxBatch {
		return 0, err
	}
	return page[len(page)-1].ID, nil
}
