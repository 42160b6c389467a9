package falldue

import (
	"context"
	"slices"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// maxBatch is how many rows go into one statement: enough that a round trip and
// a commit are shared by many, few enough that locks are held for milliseconds.
const maxBatch = 500

// enqueue stores entries, in tx or all together in one of its own, and returns
// their ids in the same order.
func (s *store) enqueue(ctx context.Context, tx Tx, entries []entry) (ids []int64, err error) {
	var x execer
	switch tx := tx.(type) {
	case nil:
		if len(entries) > maxBatch && s.server.Caps.Copy && !s.noCopy.Load() {
			ids, sent, err := s.copyIn(ctx, entries)
			if sent {
				return ids, s.explain(err)
			}
		}
		all := func(x execer) (err error) {
			ids, err = s.enqueueBatches(ctx, x, entries)
			return err
		}
		if s.isOneInsert(len(entries)) {
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
	ids, err = s.enqueueBatches(ctx, x, entries)
	return ids, s.explain(err)
}

func (s *store) enqueueBatches(ctx context.Context, x execer, entries []entry) ([]int64, error) {
	ids := make([]int64, 0, len(entries))
	err := inBatches(s, entries, func(batch []entry) error {
		more, err := s.enqueueBatch(ctx, x, batch)
		ids = append(ids, more...)
		return err
	})
	return ids, err
}

// inBatches calls f for a list as statements take it that must be full: all
// together where a batch is one parameter, in few different sizes where not.
func inBatches[T any](s *store, list []T, f func([]T) error) error {
	for len(list) > 0 {
		n := min(len(list), maxBatch)
		if s.server.Caps.Rows.Grows() {
			n = statements.SizeFilledBy(n)
		}
		if err := f(list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// isOneInsert tells whether one statement stores n rows.
func (s *store) isOneInsert(n int) bool {
	return n <= maxBatch && (!s.server.Caps.Rows.Grows() || statements.SizeFilledBy(n) == n)
}

func (s *store) enqueueBatch(ctx context.Context, x execer, batch []entry) ([]int64, error) {
	stmt, args := s.insertOf(batch)
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
	ids := make([]int64, len(batch))
	for i := range ids {
		ids[i] = first + int64(i)*s.server.Caps.IDStep
	}
	return ids, nil
}

// insertOf is the statement that stores a batch, and its arguments: what all
// rows have in common it names once, where that is possible.
func (s *store) insertOf(batch []entry) (statements.Stmt, []any) {
	params := statements.EnqueueParams{Tables: s.tables, Notify: s.notify, Plain: allPlain(batch)}
	columns, suffix := statements.EnqueueColumns, ""
	if params.Plain {
		columns, suffix = statements.PlainColumns, " plain"
	}
	values := make(statements.Values, len(columns)+1)
	values["channel"] = s.channel()
	for i, v := range batch[0].row(params.Plain) {
		values[columns[i].Name] = v
	}
	rows := make([]statements.Row, len(batch))
	switch {
	case len(batch) == 1:
		stmt := s.stmt("enqueue one"+suffix, 0, func(int) statements.Stmt { return statements.EnqueueOne(s.server, params) })
		return stmt, stmt.Bind(values, nil)
	case s.server.Caps.Rows != dialect.Unions && !slices.ContainsFunc(batch, func(e entry) bool { return !e.alike(batch[0]) }):
		payloads := make([]any, len(batch))
		for i, e := range batch {
			payloads[i] = e.payload
			rows[i] = payloads[i : i+1]
		}
		stmt := s.stmt("enqueue alike"+suffix, len(batch), func(room int) statements.Stmt { return statements.EnqueueAlike(s.server, params, room) })
		return stmt, stmt.Bind(values, rows)
	}
	for i, e := range batch {
		rows[i] = e.row(params.Plain)
	}
	stmt := s.stmt("enqueue"+suffix, len(batch), func(room int) statements.Stmt { return statements.Enqueue(s.server, params, room) })
	return stmt, stmt.Bind(values, rows)
}
