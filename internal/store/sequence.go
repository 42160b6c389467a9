package store

import (
	"context"
	"slices"

	"github.com/falldue/falldue/internal/statements"
)

// Ordered reports whether some of a task's limits are sequences.
func Ordered(limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return l.Form.Ordered() })
}

// sequenceOf returns the quota of the sequence that a source's tasks are in, or nil.
// Of several sequences, it prefers one with a known next task.
func sequenceOf(from Source, quotas map[string]*quota) (first *quota) {
	for _, l := range from.Limits {
		if q := quotas[l.Name]; l.Form.Ordered() && (first == nil || first.holder == nil) {
			first = q
			if q.holder != nil {
				return q
			}
		}
	}
	return first
}

// nextTask returns the begun task of a sequence, which holds back the tasks of a lane. It returns nil
// if no task has begun, the begun task has just changed, or that task is in the lane itself.
func (q *quota) nextTask(held Lane) *NextTask {
	if q.holder == nil || q.holder.State == "" {
		return nil
	}
	h := q.holder
	at := Lane{State: h.State, Key: held.Key, Priority: h.Priority, Kind: held.Kind, Policy: h.Policy, Attempts: h.Attempts}
	if at == held {
		return nil
	}
	return &NextTask{Queue: h.Queue, Lane: at, Anchor: h.Anchor, Now: h.Now}
}

// findWanted finds due tasks in sources that one statement can search.
func (s *Store) findWanted(ctx context.Context, x runner, p ClaimParams, wanted []wantedTasks, quotas map[string]*quota) ([]*Claim, error) {
	i := wanted[0].source
	q := sequenceOf(p.Sources[i], quotas)
	if q == nil {
		return s.findIn(ctx, x, p, wanted)
	}
	c, err := s.findNext(ctx, x, p.Queue, p.Sources[i], q)
	if err != nil || c == nil {
		return nil, err
	}
	c.Place = i + 1
	return []*Claim{c}, nil
}

// findNext finds the task of a source that comes next in its sequence, if it is due: the task
// that has begun, or else the first task. It looks for the task without locks, so that it does
// not skip a task whose row another transaction has locked.
func (s *Store) findNext(ctx context.Context, x runner, queue string, from Source, q *quota) (c *Claim, err error) {
	from.Since = 0 // tasks that an earlier claim has skipped may be before Since
	var scanner claimScanner
	read := func(r row) (err error) {
		c, err = scanner.scan(r, []Source{from})
		return err
	}
	if h := q.holder; h != nil {
		if !h.IsIn(from.Lane) {
			return nil, nil
		}
		stmt, values := s.findTaskStmt(queue, from, h.TaskID)
		return c, x.query(ctx, stmt, values, nil, read)
	}
	list, err := s.candidates(ctx, x, queue, from, 0, 1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	first := list[0]
	rows := statements.FenceColumns.Rows(1, func(int) *Key { return &first.Key })
	if err := x.query(ctx, s.batch("pick", 1, statements.Pick), nil, rows, read); err != nil {
		return nil, err
	}
	if c == nil || c.Anchor != max(first.Anchor, -1<<62) {
		q.holder = &statements.Permit{Key: first.Key} // the first task is locked or changed elsewhere, and must not be skipped
		return nil, nil
	}
	return c, nil
}

// findTaskStmt returns the statement that finds a task of a source if it is due, with its
// values.
func (s *Store) findTaskStmt(queue string, from Source, id int64) (statements.Stmt, statements.Values) {
	key := stmtKey{name: "find task", formulas: s.formulaOf(from)}
	stmt := s.stmt(key, func() statements.Stmt { return statements.FindTask(s.server, s.tables, from.formula()) })
	values := statements.Values{"queue": queue, "since": from.Since, "id": id}
	statements.SetLane(values, from.Lane)
	return stmt, values
}
