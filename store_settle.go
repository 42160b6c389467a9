package falldue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// settlement is how one claim ends.
type settlement struct {
	id, fence int64
	to        string        // the state to go to
	more      int           // what to add to attempts: 0, or -1 where this one does not count
	wait      time.Duration // from now to the moment the next wait counts from
	failure   string        // error to keep in the row; "" leaves it
	answer    any           // the handler's result as JSON, or nil
	records   []record      // what to keep of attempts
	forget    bool          // other attempts may be recorded, which go with the task
	doubtful  bool          // the handler may have settled it in its own transaction
}

// record is what is kept of an attempt.
type record struct {
	fence    int64
	attempt  int
	outcome  string
	worker   string
	duration time.Duration
	err      string
	stack    any // string or nil
}

// Outcomes of recorded attempts.
const (
	outcomeRetried = "retried"
	outcomeDead    = "dead"
	outcomeLost    = "lost"
)

// fencesOf names the claims of a batch, as statements.FenceColumns say.
func fencesOf(batch []*settlement) []statements.Row {
	rows, cells := make([]statements.Row, len(batch)), make([]any, 2*len(batch))
	for i, e := range batch {
		rows[i] = cells[2*i : 2*i+2 : 2*i+2]
		rows[i][0], rows[i][1] = e.id, e.fence
	}
	return rows
}

// errMismatch undoes a settle that did not match all its rows on an engine
// that cannot tell which.
var errMismatch = errors.New("some claims are no longer owned")

// settle ends claims of worker. It returns the ids of those that were not its
// own any more and, if it is wary, of those whose rows somebody else has locked,
// which it waits for if not. Both it left alone.
func (s *store) settle(ctx context.Context, worker string, batch []*settlement, wary bool) (lost, locked []int64, err error) {
	certain := s.server.Caps.UpdateReturning
	if !certain && !wary && !slices.ContainsFunc(batch, func(e *settlement) bool { return e.doubtful }) {
		err = s.inTx(ctx, func(x execer) error {
			matched, err := s.settleAll(ctx, x, worker, batch)
			if err == nil && matched != len(batch) {
				return errMismatch
			}
			return err
		})
		if !errors.Is(err, errMismatch) {
			return nil, nil, err
		}
	}
	wary = wary || !certain
	attempt := func(x execer) error {
		lost, locked = nil, nil
		live := batch
		if wary {
			var free map[int64]bool
			if free, lost, locked, err = s.grip(ctx, x, worker, fencesOf(batch)); err != nil {
				return err
			}
			live = slices.DeleteFunc(slices.Clone(batch), func(e *settlement) bool { return !free[e.id] })
		}
		_, err := s.settleAllLosing(ctx, x, worker, live, &lost)
		return err
	}
	if !wary && s.isOneStatement(batch) {
		err = s.write(ctx, func() error { return attempt(alone{pool{s}}) })
	} else {
		err = s.inTx(ctx, attempt)
	}
	return lost, locked, err
}

// grip locks the rows of claims and tells which of them are free, which are not
// worker's any more, and which somebody else has locked. It waits for locks only
// where the engine cannot pass over them.
func (s *store) grip(ctx context.Context, x execer, worker string, fences []statements.Row) (free map[int64]bool, lost, locked []int64, err error) {
	free, err = s.owned(ctx, x, worker, fences, true)
	if err != nil || len(free) == len(fences) {
		return free, nil, nil, err
	}
	var mine map[int64]bool
	if s.server.Caps.SkipLocked {
		if mine, err = s.owned(ctx, x, worker, fences, false); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, row := range fences {
		id, _ := row[0].(int64)
		switch {
		case free[id]:
		case mine[id]:
			locked = append(locked, id)
		default:
			lost = append(lost, id)
		}
	}
	return free, lost, locked, nil
}

// isOneStatement tells whether a batch needs no transaction.
func (s *store) isOneStatement(batch []*settlement) bool {
	way := s.way(batch[0])
	for _, e := range batch {
		if e.records != nil || e.forget || s.way(e) != way {
			return false
		}
	}
	return true
}

// The three statements that settle, the cheapest first.
const (
	byDelete = iota
	byFinish
	bySettle
)

func (s *store) way(e *settlement) int {
	switch {
	case e.to == statements.StateDone && !s.keep:
		return byDelete
	case e.to == statements.StateDone && e.answer == nil:
		return byFinish
	}
	return bySettle
}

func (s *store) settleAll(ctx context.Context, x execer, worker string, batch []*settlement) (matched int, err error) {
	return s.settleAllLosing(ctx, x, worker, batch, new([]int64))
}

// settleAllLosing runs a batch's statements. It returns how many rows matched
// and, on engines that tell, adds the ids that did not to lost.
func (s *store) settleAllLosing(ctx context.Context, x execer, worker string, batch []*settlement, lost *[]int64) (matched int, err error) {
	var rows [3][]statements.Row
	for i, row := range fencesOf(batch) {
		e := batch[i]
		way := s.way(e)
		if rows[way] == nil {
			rows[way] = make([]statements.Row, 0, len(batch))
		}
		if way == bySettle {
			row = append(row, e.to, int64(e.more), e.wait.Microseconds(), orNil(e.failure), e.answer)
		}
		rows[way] = append(rows[way], row)
	}
	values := statements.Values{"worker": worker}
	for way, rows := range rows {
		if len(rows) == 0 {
			continue
		}
		var stmt statements.Stmt
		switch way {
		case byDelete:
			stmt = s.rowStmt("delete", len(rows), statements.Delete)
		case byFinish:
			stmt = s.rowStmt("finish", len(rows), statements.Finish)
		case bySettle:
			stmt = s.rowStmt("settle", len(rows), statements.Settle)
		}
		n, err := s.change(ctx, x, stmt, values, rows, lost)
		if err != nil {
			return 0, err
		}
		matched += n
	}
	return matched, s.note(ctx, x, batch, setOf(*lost))
}

// change runs an UPDATE or DELETE over a batch of claims.
func (s *store) change(ctx context.Context, x execer, stmt statements.Stmt, values statements.Values, rows []statements.Row, lost *[]int64) (matched int, err error) {
	args := stmt.Bind(values, rows)
	if !s.server.Caps.UpdateReturning {
		res, err := x.exec(ctx, stmt.SQL, args)
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		return int(n), err
	}
	ids, err := selectInt64s(ctx, x, stmt.SQL, args)
	if err != nil || len(ids) == len(rows) {
		return len(ids), err
	}
	hit := setOf(ids)
	for _, row := range rows {
		if id, _ := row[0].(int64); !hit[id] {
			*lost = append(*lost, id)
		}
	}
	return len(ids), nil
}

// note records what went wrong in the attempts of a batch, and forgets the
// attempts of tasks that are gone.
func (s *store) note(ctx context.Context, x execer, batch []*settlement, lost map[int64]bool) error {
	var records, gone []statements.Row
	for _, e := range batch {
		if lost[e.id] {
			continue
		}
		for _, r := range e.records {
			records = append(records, statements.Row{e.id, r.fence, int64(r.attempt), r.outcome, r.worker, r.duration.Microseconds(), r.err, r.stack})
		}
		if e.forget && s.way(e) == byDelete {
			gone = append(gone, statements.Row{e.id})
		}
	}
	err := inBatches(s, records, func(batch []statements.Row) error {
		stmt := s.rowStmt("record", len(batch), statements.Record)
		_, err := x.exec(ctx, stmt.SQL, stmt.Bind(nil, batch))
		return err
	})
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		stmt := s.rowStmt("forget", len(gone), statements.Forget)
		if _, err := x.exec(ctx, stmt.SQL, stmt.Bind(nil, gone)); err != nil {
			return err
		}
	}
	return nil
}

// settleTx ends one claim inside the caller's transaction. It reports false
// when the claim is no longer worker's.
func (s *store) settleTx(ctx context.Context, tx Tx, worker string, e settlement) (bool, error) {
	var x execer = plain{tx}
	if tx, ok := tx.(preparedTx); ok {
		x = inside{s: s, tx: tx}
	}
	matched, err := s.settleAll(ctx, x, worker, []*settlement{&e})
	return matched == 1, s.explain(err)
}

// extend moves the end of worker's leases to lease from now. It returns the
// claims that the worker no longer holds, and those whose rows somebody else has
// locked, whose leases stay as they are.
func (s *store) extend(ctx context.Context, worker string, lease time.Duration, fences []statements.Row) (lost, locked []int64, err error) {
	err = s.inTx(ctx, func(x execer) error {
		var free map[int64]bool
		if free, lost, locked, err = s.grip(ctx, x, worker, fences); err != nil || len(free) == 0 {
			return err
		}
		live := slices.DeleteFunc(slices.Clone(fences), func(row statements.Row) bool { id, _ := row[0].(int64); return !free[id] })
		stmt := s.rowStmt("extend", len(live), statements.Extend)
		_, err := s.change(ctx, x, stmt, statements.Values{"worker": worker, "lease": lease.Microseconds()}, live, &lost)
		return err
	})
	return lost, locked, err
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
