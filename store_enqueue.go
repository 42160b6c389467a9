package falldue

import (
	"context"
	"slices"

	"github.com/falldue/falldue/sqlgen"
)

// maxBatch is how many rows go into one statement: enough that a round trip and
// a commit are shared by many, few enough that locks are held for milliseconds.
const maxBatch = 500

// enqueue stores entries, in tx or all together in one of its own, and returns
// their ids in the same order.
func (s *store) enqueue(ctx context.Context, tx Tx, entries []entry) (ids []int64, err error) {
	rows := make([]sqlgen.Row, len(entries))
	for i, e := range entries {
		rows[i] = e.row()
	}
	var x execer
	switch tx := tx.(type) {
	case nil:
		all := func(x execer) (err error) {
			ids, err = s.enqueueBatches(ctx, x, rows)
			return err
		}
		if len(rows) > maxBatch && s.server.Caps.Copy && !s.noCopy.Load() {
			ids, sent, err := s.copyIn(ctx, entries)
			if sent {
				return ids, s.explain(err)
			}
		}
		if s.isOneInsert(len(rows)) {
			err = s.write(ctx, func() error { return all(alone{pool{s}}) })
		} else {
			err = s.inTx(ctx, all)
		}
		return ids, err
	case preparedTx:
		x = inside{s: s, tx: tx}
	default:
		x = plain{tx}
	}
	ids, err = s.enqueueBatches(ctx, x, rows)
	return ids, s.explain(err)
}

func (s *store) enqueueBatches(ctx context.Context, x execer, rows []sqlgen.Row) ([]int64, error) {
	ids := make([]int64, 0, len(rows))
	err := s.inBatches(rows, func(batch []sqlgen.Row) error {
		more, err := s.enqueueBatch(ctx, x, batch)
		ids = append(ids, more...)
		return err
	})
	return ids, err
}

// inBatches calls f for rows as statements take them that must be full: all
// together where a batch is one parameter, in few different sizes where not.
func (s *store) inBatches(rows []sqlgen.Row, f func([]sqlgen.Row) error) error {
	for len(rows) > 0 {
		n := min(len(rows), maxBatch)
		if s.server.Caps.Rows.Grows() {
			n = sqlgen.FullRoom(n)
		}
		if err := f(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// isOneInsert tells whether one statement stores n rows.
func (s *store) isOneInsert(n int) bool {
	return n <= maxBatch && (!s.server.Caps.Rows.Grows() || sqlgen.FullRoom(n) == n)
}

func (s *store) enqueueBatch(ctx context.Context, x execer, rows []sqlgen.Row) ([]int64, error) {
	var stmt sqlgen.Stmt
	var args []any
	params := sqlgen.EnqueueParams{Tables: s.tables, Notify: s.notify}
	values := sqlgen.Values{"channel": s.channel()}
	if len(rows) == 1 {
		stmt = s.stmt("enqueue one", 0, func(int) sqlgen.Stmt { return sqlgen.EnqueueOne(s.server, params) })
		for i, c := range sqlgen.EnqueueColumns {
			values[c.Name] = rows[0][i]
		}
		args = stmt.Bind(values, nil)
	} else {
		stmt = s.stmt("enqueue", len(rows), func(room int) sqlgen.Stmt { return sqlgen.Enqueue(s.server, params, room) })
		args = stmt.Bind(values, rows)
	}
	if s.server.Caps.InsertReturning {
		ids, err := selectInt64s(ctx, x, stmt.SQL, args)
		slices.Sort(ids)
		return ids, err
	}
	res, err := x.exec(ctx, stmt.SQL, args)
	if err != nil {
		return nil, err
	}
	first, err := res.LastInsertId()
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i := range ids {
		ids[i] = first + int64(i)*s.server.Caps.IDStep
	}
	return ids, nil
}
