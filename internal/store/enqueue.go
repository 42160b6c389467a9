package store

import (
	"context"
	"slices"
	"strings"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// alike reports whether two entries differ at most in their payloads.
func alike(e, other Entry) bool {
	e.Payload = other.Payload
	return e == other
}

// allPlain reports whether all entries are due now and have a queue, a kind, a
// payload and metadata only.
func allPlain(entries []Entry) bool {
	return !slices.ContainsFunc(entries, func(e Entry) bool {
		return e != Entry{Queue: e.Queue, Kind: e.Kind, Payload: e.Payload, Metadata: e.Metadata}
	})
}

// haveMetadata reports whether some entries have metadata.
func haveMetadata(entries []Entry) bool {
	for i := range entries {
		if entries[i].Metadata.Valid {
			return true
		}
	}
	return false
}

// maxNotice is the greatest length of a notice's text in bytes, one less than what
// PostgreSQL refuses.
const maxNotice = 7999

// notice returns the text of the notice of entries, as noticeOf does.
func (s *Store) notice(entries []Entry) string {
	return s.noticeOf(len(entries), func(i int) string { return entries[i].Queue })
}

// noticeOf returns the text of the notice of n tasks: the names of their queues. It is
// "", which stands for all queues, if they are too many.
func (s *Store) noticeOf(n int, queueOf func(i int) string) string {
	last := queueOf(0)
	queues, length := []string{last}, len(last)
	for i := 1; i < n; i++ {
		queue := queueOf(i)
		if queue == last || slices.Contains(queues, queue) {
			continue
		}
		if length += 1 + len(queue); length > maxNotice {
			return ""
		}
		last, queues = queue, append(queues, queue)
	}
	return strings.Join(queues, " ")
}

// notifies reports whether an enqueue by x notifies listeners when its transaction commits.
func (s *Store) notifies(x runner) bool {
	if _, ok := x.(unprepared); ok {
		return s.notifyTx
	}
	return s.notify
}

// notifyWithin notifies listeners of tasks of n queues when the transaction of x commits.
func (s *Store) notifyWithin(ctx context.Context, x runner, n int, queueOf func(i int) string) error {
	values := statements.Values{"channel": s.Channel(), "notice": s.noticeOf(n, queueOf)}
	return x.query(ctx, s.notifyStmt(), values, nil, func(row) error { return nil })
}

// Notify sends a notice to listeners, on engines with Caps.Notify.
func (s *Store) Notify(ctx context.Context, notice string) error {
	return s.read(ctx, s.notifyStmt(), statements.Values{"channel": s.Channel(), "notice": notice}, func() {}, func(row) error { return nil })
}

func (s *Store) notifyStmt() statements.Stmt {
	return s.fixed("notify", func(server dialect.Server, _ dialect.Tables) statements.Stmt { return statements.Notify(server) })
}

// Enqueue stores entries and returns their ids in the same order. It stores them in
// tx, or if tx is nil in a transaction of its own.
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
	insert := func(x runner) ([]int64, error) { return s.insert(ctx, x, entries) }
	if s.isOneInsert(entries) {
		return once(ctx, s, insert)
	}
	return inTx(ctx, s, insert)
}

// isOneInsert reports whether a single statement can store entries.
func (s *Store) isOneInsert(entries []Entry) bool {
	n := len(entries)
	return fitting(s, statements.LongColumns, n, func(i int) *Entry { return &entries[i] }) == n && (!s.server.Caps.Rows.Grows() || statements.SizeFilledBy(n) == n)
}

func (s *Store) insert(ctx context.Context, x runner, entries []Entry) ([]int64, error) {
	ids := make([]int64, 0, len(entries))
	err := inBatchesOf(s, statements.LongColumns, entries, func(batch []Entry) error {
		list, err := s.insertBatch(ctx, x, batch)
		ids = append(ids, list...)
		return err
	})
	return ids, err
}

func (s *Store) insertBatch(ctx context.Context, x runner, batch []Entry) ([]int64, error) {
	stmt, values, rows := s.insertStmt(batch, s.notifies(x))
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

// insertStmt returns the statement that stores a batch, and its arguments. Where the
// engine allows it, values that all rows have in common are passed once.
func (s *Store) insertStmt(batch []Entry, notify bool) (statements.Stmt, statements.Values, []statements.Row) {
	params := statements.EnqueueParams{Tables: s.tables, Notify: notify, Plain: allPlain(batch), Metadata: haveMetadata(batch)}
	params.Unique = !params.Plain && slices.ContainsFunc(batch, func(e Entry) bool { return e.Unique != "" })
	columns := params.Columns()
	values := statements.Values{}
	if notify {
		values["channel"], values["notice"] = s.Channel(), s.notice(batch)
	}
	key := stmtKey{plain: params.Plain, unique: params.Unique, metadata: params.Metadata, notify: notify, size: s.size(len(batch))}
	switch {
	case len(batch) == 1:
		columns.Set(values, &batch[0])
		key.name = "enqueue one"
		return s.stmt(key, func() statements.Stmt { return statements.EnqueueOne(s.server, params) }), values, nil
	case statements.HasEnqueueAlike(s.server) && !slices.ContainsFunc(batch, func(e Entry) bool { return !alike(e, batch[0]) }):
		columns.Set(values, &batch[0])
		key.name, columns = "enqueue alike", statements.PayloadColumns
		stmt := s.stmt(key, func() statements.Stmt { return statements.EnqueueAlike(s.server, params, key.size) })
		return stmt, values, columns.Rows(len(batch), func(i int) *Entry { return &batch[i] })
	}
	key.name = "enqueue"
	stmt := s.stmt(key, func() statements.Stmt { return statements.Enqueue(s.server, params, key.size) })
	return stmt, values, columns.Rows(len(batch), func(i int) *Entry { return &batch[i] })
}
