package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// Entry is a task to be stored.
type Entry struct {
	Queue, Kind, Policy   string
	Priority, MaxAttempts int
	RunAt                 sql.Null[int64] // the anchor, in microseconds since 1970
	Delay                 time.Duration   // from now to the anchor, where there is no RunAt
	Payload               string
}

// row returns the entry in the order of statements.EnqueueColumns, or of
// PlainColumns.
func (e Entry) row(plain bool) statements.Row {
	if plain {
		return statements.Row{e.Queue, e.Kind, e.Payload}
	}
	var at any
	if e.RunAt.Valid {
		at = e.RunAt.V
	}
	return statements.Row{e.Queue, e.Kind, e.Policy, int64(e.Priority), int64(e.MaxAttempts), at, e.Delay.Microseconds(), e.Payload}
}

// alike reports whether two entries differ in nothing but their payload.
func (e Entry) alike(other Entry) bool {
	e.Payload = other.Payload
	return e == other
}

// allPlain reports whether all entries are due now and have no settings of their
// own.
func allPlain(entries []Entry) bool {
	return !slices.ContainsFunc(entries, func(e Entry) bool {
		return e != Entry{Queue: e.Queue, Kind: e.Kind, Payload: e.Payload}
	})
}

// Enqueue stores entries, in tx or all together in a transaction of its own, and
// returns their ids in the same order.
func (s *Store) Enqueue(ctx context.Context, tx Tx, entries []Entry) (ids []int64, err error) {
	if tx != nil {
		ids, err = s.insert(ctx, unprepared{tx}, entries)
		return ids, s.explain(err)
	}
	if len(entries) > MaxBatch && s.server.Caps.Copy && !s.noCopy.Load() {
		ids, sent, err := s.copyIn(ctx, entries)
		if sent {
			return ids, s.explain(err)
		}
	}
	insert := func(x runner) (err error) {
		ids, err = s.insert(ctx, x, entries)
		return err
	}
	if s.isOneInsert(len(entries)) {
		err = s.write(ctx, func() error { return s.once(ctx, insert) })
	} else {
		err = s.inTx(ctx, insert)
	}
	return ids, err
}

// isOneInsert reports whether one statement stores n rows.
func (s *Store) isOneInsert(n int) bool {
	return n <= MaxBatch && (!s.server.Caps.Rows.Grows() || statements.FullRoom(n) == n)
}

func (s *Store) insert(ctx context.Context, x runner, entries []Entry) ([]int64, error) {
	ids := make([]int64, 0, len(entries))
	err := inBatches(s, entries, func(batch []Entry) error {
		list, err := s.insertBatch(ctx, x, batch)
		ids = append(ids, list...)
		return err
	})
	return ids, err
}

func (s *Store) insertBatch(ctx context.Context, x runner, batch []Entry) ([]int64, error) {
	stmt, values, rows := s.insertStmt(batch)
	if s.server.Caps.InsertReturning {
		ids, err := int64s(ctx, x, stmt, values, rows)
		slices.Sort(ids)
		return ids, err
	}
	result, err := x.exec(ctx, stmt, values, rows)
	if err != nil {
		return nil, err
	}
	first, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(batch))
	for i := range ids {
		ids[i] = first + int64(i)*s.server.Caps.IDStep
	}
	return ids, nil
}

// insertStmt returns the statement that stores a batch, and its arguments. What
// all rows have in common it names once, where that is possible.
func (s *Store) insertStmt(batch []Entry) (statements.Stmt, statements.Values, []statements.Row) {
	params := statements.EnqueueParams{Tables: s.tables, Notify: s.notify, Plain: allPlain(batch)}
	columns := statements.EnqueueColumns
	if params.Plain {
		columns = statements.PlainColumns
	}
	values := make(statements.Values, len(columns)+1)
	values["channel"] = s.Channel()
	for i, v := range batch[0].row(params.Plain) {
		values[columns[i].Name] = v
	}
	key := stmtKey{variant: params.Plain, room: s.room(len(batch))}
	rows := make([]statements.Row, len(batch))
	switch {
	case len(batch) == 1:
		key.name = "enqueue one"
		return s.stmt(key, func() statements.Stmt { return statements.EnqueueOne(s.server, params) }), values, nil
	case s.server.Caps.Rows != dialect.Unions && !slices.ContainsFunc(batch, func(e Entry) bool { return !e.alike(batch[0]) }):
		payloads := make([]any, len(batch))
		for i, e := range batch {
			payloads[i] = e.Payload
			rows[i] = payloads[i : i+1]
		}
		key.name = "enqueue alike"
		return s.stmt(key, func() statements.Stmt { return statements.EnqueueAlike(s.server, params, key.room) }), values, rows
	}
	for i, e := range batch {
		rows[i] = e.row(params.Plain)
	}
	key.name = "enqueue"
	return s.stmt(key, func() statements.Stmt { return statements.Enqueue(s.server, params, key.room) }), values, rows
}
