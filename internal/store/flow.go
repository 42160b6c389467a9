package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

type (
	// Waiter is a task that runs after others.
	Waiter = statements.Waiter
	// Edge is a task and one that runs after it.
	Edge = statements.Edge
)

// Flow has the dependencies among the entries of an enqueue.
type Flow struct {
	// Waiters are the entries that run after others, with their reaction to dead members.
	Waiters map[int]statements.OnDeath
	// Edges are the dependencies, as indices of entries.
	Edges []FlowEdge
	// Sibling is a task whose waiters run after all entries, too, or 0.
	Sibling int64
}

// FlowEdge means that the entry Waiter runs after the entry Member.
type FlowEdge struct{ Member, Waiter int }

// EnqueueFlow is [Store.Enqueue] for the entries of a flow: some run after others. Its error
// wraps [ErrNotFound] if no task waits for flow.Sibling anymore.
func (s *Store) EnqueueFlow(ctx context.Context, tx Tx, entries []Entry, flow Flow) ([]int64, error) {
	enqueue := func(x runner) ([]int64, error) {
		beside, err := s.waitersOf(ctx, x, flow.Sibling)
		if err != nil {
			return nil, err
		}
		ids, err := s.insert(ctx, x, entries)
		if err != nil {
			return nil, err
		}
		return ids, s.putFlow(ctx, x, ids, flow, beside)
	}
	if tx != nil {
		ids, err := enqueue(unprepared{tx})
		return ids, s.explain(err)
	}
	return inTx(ctx, s, enqueue)
}

// waitersOf returns the waiters of a member. The member then cannot end before the transaction.
// The error wraps [ErrNotFound] if the member has no waiters. For the member 0, waitersOf returns
// no waiters and no error.
func (s *Store) waitersOf(ctx context.Context, x runner, member int64) (list []int64, err error) {
	if member == 0 {
		return nil, nil
	}
	err = x.query(ctx, s.fixed("pending edges", statements.PendingEdges), statements.Values{"id": member}, nil, func(r row) error {
		var e Edge
		err := statements.EdgeColumns.Scan(r, &e)
		list = append(list, e.Waiter)
		return err
	})
	if err == nil && len(list) == 0 {
		err = Missing(fmt.Sprintf("falldue: no task waits for task %d, which has ended or has no dependents", member))
	}
	return list, err
}

func (s *Store) putFlow(ctx context.Context, x runner, ids []int64, flow Flow, beside []int64) error {
	var waiters []Waiter
	for i, id := range ids {
		if on, ok := flow.Waiters[i]; ok {
			waiters = append(waiters, Waiter{ID: id, OnDeath: int(on)})
		}
	}
	edges := make([]Edge, len(flow.Edges))
	for i, e := range flow.Edges {
		edges[i] = Edge{Member: ids[e.Member], Waiter: ids[e.Waiter]}
	}
	for _, waiter := range beside {
		for _, id := range ids {
			edges = append(edges, Edge{Member: id, Waiter: waiter})
		}
	}
	err := inBatches(s, waiters, func(batch []Waiter) error {
		fences := statements.FenceColumns.Rows(len(batch), func(i int) *Key { return &Key{TaskID: batch[i].ID} })
		if _, err := x.exec(ctx, s.batch("block", len(batch), statements.Block), nil, fences); err != nil {
			return err
		}
		rows := statements.WaiterColumns.Rows(len(batch), func(i int) *Waiter { return &batch[i] })
		_, err := x.exec(ctx, s.batch("put waiters", len(batch), statements.PutWaiters), nil, rows)
		return err
	})
	if err != nil {
		return err
	}
	return inBatches(s, edges, func(batch []Edge) error {
		rows := statements.EdgeKeyColumns.Rows(len(batch), func(i int) *Edge { return &batch[i] })
		_, err := x.exec(ctx, s.batch("put edges", len(batch), statements.PutEdges), nil, rows)
		return err
	})
}

// flowLog is the participant that records how members have ended.
type flowLog struct{ s *Store }

func (l flowLog) joins(e *Settlement) bool {
	return e.Member && e.State != statements.StateOpen && e.State != statements.StateSnoozed
}

func (l flowLog) settle(ctx context.Context, x runner, batch []*Settlement) error {
	for _, outcome := range []string{statements.StateDone, statements.StateDead, statements.StateCancelled} {
		var ended []int64
		for _, e := range batch {
			if e.State == outcome {
				ended = append(ended, e.TaskID)
			}
		}
		if _, err := l.s.markEdges(ctx, x, ended, outcome); err != nil {
			return err
		}
	}
	return nil
}

// markEdges records how members have ended, and returns how many tasks run after them.
func (s *Store) markEdges(ctx context.Context, x runner, members []int64, outcome string) (n int64, err error) {
	values := statements.Values{"outcome": outcome, "deleted": 0}
	if outcome == statements.OutcomeDeleted {
		values["deleted"] = 1
	}
	err = inBatches(s, members, func(batch []int64) error {
		result, err := x.exec(ctx, s.batch("mark edges", len(batch), statements.MarkEdges), values, idRows(batch))
		if err != nil {
			return err
		}
		matched, err := result.RowsAffected()
		n += matched
		return err
	})
	return n, err
}

// WaitersOf returns the ids of the tasks that run after some of the members, up to [MaxBatch].
func (s *Store) WaitersOf(ctx context.Context, members []int64) (ids []int64, err error) {
	return reading(ctx, s, func(x runner) ([]int64, error) {
		return int64s(ctx, x, s.batch("waiters of", len(members), statements.WaitersOf), nil, idRows(members))
	})
}

// Verdict is a decision about a waiter.
type Verdict struct {
	ID      int64
	Queue   string
	To      Fate
	Corrupt error // why the waiter's row cannot be read, or nil; it stays blocked then
}

// Fate is what happens to a waiter next.
type Fate int

// The fates of waiters.
const (
	StaysBlocked Fate = iota
	Opens
	IsCancelled
	IsForgotten // its task is not blocked any more
)

// Judge returns a verdict for each task that waits for others. The caller must first
// commit the transaction in which it has settled a member. If two transactions end the last
// members concurrently, the call after the second commit sees both ends.
func (s *Store) Judge(ctx context.Context, ids []int64) ([]Verdict, error) {
	return s.judged(ctx, s.batch("waiters by id", len(ids), statements.WaitersByID), nil, idRows(ids))
}

// JudgePage is [Store.Judge] for up to [MaxBatch] waiters after the one with the id after, in
// the order of their ids.
func (s *Store) JudgePage(ctx context.Context, after int64) ([]Verdict, error) {
	return s.judged(ctx, s.fixed("waiters", statements.Waiters), statements.Values{"after": after, "limit": MaxBatch}, nil)
}

func (s *Store) judged(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) ([]Verdict, error) {
	waiters, err := s.waiters(ctx, stmt, values, rows)
	list := make([]Verdict, len(waiters))
	for i, w := range waiters {
		list[i] = Verdict{w.ID, w.Queue, fateOf(w), w.corrupt}
	}
	return list, err
}

// waiterState is a waiter, and why its row cannot be read.
type waiterState struct {
	statements.WaiterState
	corrupt error
}

func (s *Store) waiters(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) ([]waiterState, error) {
	return reading(ctx, s, func(x runner) ([]waiterState, error) { return s.waiterStates(ctx, x, stmt, values, rows) })
}

func (s *Store) waiterStates(ctx context.Context, x runner, stmt statements.Stmt, values statements.Values, rows []statements.Row) (list []waiterState, err error) {
	err = x.query(ctx, stmt, values, rows, func(r row) error {
		var w waiterState
		if w.corrupt = statements.WaiterStateColumns.Scan(r, &w.WaiterState); w.corrupt == nil && (w.OnDeath < int(statements.DeathWait) || w.OnDeath > int(statements.DeathFirst)) {
			w.corrupt = fmt.Errorf("column on_death is %d: must be between %d and %d", w.OnDeath, statements.DeathWait, statements.DeathFirst)
		}
		list = append(list, w)
		return nil
	})
	return list, err
}

// OnDeath returns the reaction of a blocked task to dead members. It reports false if the task
// is not blocked.
func (s *Store) OnDeath(ctx context.Context, id int64) (on statements.OnDeath, ok bool, err error) {
	list, err := s.waiters(ctx, s.batch("waiters by id", 1, statements.WaitersByID), nil, idRows([]int64{id}))
	if err == nil && len(list) > 0 {
		err = list[0].corrupt
	}
	if err != nil || len(list) == 0 || list[0].State != statements.StateBlocked { // the task may have been cancelled or deleted
		return 0, false, err
	}
	return statements.OnDeath(list[0].OnDeath), true, nil
}

// fateOf decides the fate of a waiter.
func fateOf(w waiterState) Fate {
	if w.corrupt != nil {
		return StaysBlocked
	}
	pending, dead, gone := w.Pending != 0, w.Dead != 0, w.Deleted != 0
	failed := dead || gone || w.Cancelled != 0
	opens, cancelled := !pending && !failed, gone // a deleted member cannot be retried
	switch statements.OnDeath(w.OnDeath) {
	case statements.DeathCancel:
		cancelled = failed
	case statements.DeathRun:
		opens, cancelled = !pending, false
	case statements.DeathFirst:
		opens, cancelled = dead, !pending
	}
	switch {
	case w.State != statements.StateBlocked:
		return IsForgotten
	case opens:
		return Opens
	case cancelled:
		return IsCancelled
	}
	return StaysBlocked
}

// EndWaiting opens, cancels or forgets waiters, and returns the ids of these waiters. It leaves
// out waiters whose rows another transaction has locked. It first judges the waiters again in its
// own transaction, and leaves out waiters that have another fate: the earlier verdict may come
// from a session that reads uncommitted rows.
func (s *Store) EndWaiting(ctx context.Context, ids []int64, to Fate) ([]int64, error) {
	return inTx(ctx, s, func(x runner) (ended []int64, err error) {
		err = inBatches(s, slices.Sorted(slices.Values(ids)), func(batch []int64) error {
			if to != IsForgotten {
				if batch, err = int64s(ctx, x, s.batch("blocked tasks", len(batch), statements.BlockedTasks), nil, idRows(batch)); err != nil || len(batch) == 0 {
					return err
				}
			}
			waiters, err := s.waiterStates(ctx, x, s.batch("waiters by id", len(batch), statements.WaitersByID), nil, idRows(batch))
			if err != nil {
				return err
			}
			batches := map[string][]int64{} // by the reason of a cancel
			for _, w := range waiters {
				if fateOf(w) == to {
					batches[cancelReason(w)] = append(batches[cancelReason(w)], w.ID)
				}
			}
			for _, reason := range slices.Sorted(maps.Keys(batches)) {
				ended = append(ended, batches[reason]...)
				if err := s.endWaiting(ctx, x, batches[reason], to, reason); err != nil {
					return err
				}
			}
			return nil
		})
		return ended, err
	})
}

// cancelReason explains why a waiter is cancelled.
func cancelReason(w waiterState) string {
	switch {
	case statements.OnDeath(w.OnDeath) == statements.DeathFirst:
		return "cancelled: none of the tasks before it died"
	case w.Deleted != 0:
		return "cancelled: a task before it was deleted"
	case w.Dead != 0:
		return "cancelled: a task before it is dead"
	case w.Cancelled != 0:
		return "cancelled: a task before it was cancelled"
	}
	return ""
}

func (s *Store) endWaiting(ctx context.Context, x runner, ids []int64, to Fate, reason string) (err error) {
	return inBatches(s, ids, func(batch []int64) error {
		switch to {
		case Opens:
			_, err = x.exec(ctx, s.batch("open waiters", len(batch), statements.OpenWaiters), nil, idRows(batch))
		case IsCancelled:
			if _, err = x.exec(ctx, s.batch("cancel waiters", len(batch), statements.CancelWaiters), statements.Values{"reason": reason}, idRows(batch)); err == nil {
				_, err = s.markEdges(ctx, x, batch, statements.OutcomeCancelled)
			}
		}
		if err == nil {
			_, err = x.exec(ctx, s.batch("drop waiters", len(batch), statements.DropWaiters), nil, idRows(batch))
		}
		return err
	})
}

// idRows returns ids as rows of a batch of [statements.IDColumns].
func idRows(ids []int64) []statements.Row {
	return statements.IDColumns.Rows(len(ids), func(i int) *Key { return &Key{TaskID: ids[i]} })
}

// CountEdges returns how many members of a waiter have each outcome.
func (s *Store) CountEdges(ctx context.Context, waiter int64) (n map[string]int64, err error) {
	err = s.read(ctx, s.fixed("count edges", statements.CountEdges), statements.Values{"waiter": waiter}, func() { n = map[string]int64{} }, func(r row) error {
		count, err := r.int(1)
		n[r.text(0)] = count
		return err
	})
	return n, err
}

// Members returns up to limit ids of members of a waiter with an outcome, after the id after.
func (s *Store) Members(ctx context.Context, waiter int64, outcome string, after int64, limit int) ([]int64, error) {
	values := statements.Values{"waiter": waiter, "outcome": outcome, "after": after, "limit": limit}
	return reading(ctx, s, func(x runner) ([]int64, error) {
		return int64s(ctx, x, s.fixed("members", statements.Members), values, nil)
	})
}

// Neighbor is an edge with the task at its other end.
type Neighbor = statements.Neighbor

// Neighbors returns up to limit edges in the order of their ids: from waiters to their members, or, if after is set,
// from members to their waiters.
func (s *Store) Neighbors(ctx context.Context, ids []int64, after bool, limit int) (list []Neighbor, err error) {
	name := "neighbors before"
	if after {
		name = "neighbors after"
	}
	stmt := func(server dialect.Server, tables dialect.Tables, size int) statements.Stmt {
		return statements.Neighbors(server, tables, size, after)
	}
	err = inBatches(s, ids, func(batch []int64) error {
		some, err := reading(ctx, s, func(x runner) (some []Neighbor, err error) {
			err = x.query(ctx, s.batch(name, len(batch), stmt), statements.Values{"limit": limit}, idRows(batch), func(r row) error {
				some = append(some, Neighbor{})
				return statements.NeighborColumns.Scan(r, &some[len(some)-1])
			})
			return some, err
		})
		list = append(list, some...)
		return err
	})
	slices.SortFunc(list, func(a, b Neighbor) int {
		return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Waiter, b.Waiter))
	})
	return list[:min(len(list), limit)], err
}

// ForgetMembers deletes the edges of up to [MaxBatch] waiters that are gone.
func (s *Store) ForgetMembers(ctx context.Context, waiters []int64) error {
	rows, stmt := idRows(waiters), s.batch("edges of", len(waiters), statements.EdgesOf)
	for {
		list, err := reading(ctx, s, func(x runner) (list []Edge, err error) {
			err = x.query(ctx, stmt, statements.Values{"limit": MaxBatch}, rows, func(r row) error {
				list = append(list, Edge{})
				return statements.EdgeColumns.Scan(r, &list[len(list)-1])
			})
			return list, err
		})
		if err != nil || len(list) == 0 {
			return err
		}
		if err := s.dropEdges(ctx, list); err != nil {
			return err
		}
	}
}

func (s *Store) dropEdges(ctx context.Context, list []Edge) error {
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		return struct{}{}, inBatches(s, list, func(batch []Edge) error {
			rows := statements.EdgeKeyColumns.Rows(len(batch), func(i int) *Edge { return &batch[i] })
			_, err := x.exec(ctx, s.batch("drop edges", len(batch), statements.DropEdges), nil, rows)
			return err
		})
	})
	return err
}

// EdgeKey is the place of an edge in the order of all edges.
type EdgeKey struct{ Member, Waiter int64 }

// CheckEdges compares up to [MaxBatch] edges with their tasks, beginning behind a given edge. It
// deletes edges whose waiters are gone. It corrects edges whose members the cleaner has deleted,
// or another program has changed without an update of the edges.
//
// last is the last edge compared, or the zero value after all edges. waiters are the waiters of
// corrected edges. err is the first error; CheckEdges corrects the other edges nevertheless.
func (s *Store) CheckEdges(ctx context.Context, after EdgeKey) (last EdgeKey, waiters []int64, err error) {
	values := statements.Values{"task_id": after.Member, "waiter": after.Waiter, "limit": MaxBatch}
	// A transaction reads only committed rows.
	n, corrupt := 0, error(nil)
	page, err := inTx(ctx, s, func(x runner) (list []statements.CheckedEdge, err error) {
		n, corrupt = 0, nil
		err = x.query(ctx, s.fixed("edge page", statements.EdgePage), values, nil, func(r row) error {
			n++
			var e statements.CheckedEdge
			if refused := statements.CheckedEdgeColumns.Scan(r, &e); refused != nil {
				corrupt = fmt.Errorf("the row of table edges with waiter %d and member %d cannot be read: %w", e.Edge.Waiter, e.Member, refused)
				return nil
			}
			list = append(list, e)
			return nil
		})
		return list, err
	})
	if err != nil {
		return after, nil, err
	}
	err = corrupt
	var gone []Edge
	var wrong []statements.CheckedEdge
	for _, e := range page {
		switch {
		case e.Waiter == "":
			gone = append(gone, e.Edge)
		case e.Waiter == statements.StateBlocked && e.Outcome != e.Truth && e.Outcome != statements.StateDone: // done tasks are deleted
			wrong = append(wrong, e)
		}
	}
	if len(gone) > 0 {
		err = cmp.Or(s.dropEdges(ctx, gone), err)
	}
	for _, e := range wrong {
		values := statements.Values{"task_id": e.Member, "waiter": e.Edge.Waiter, "was": e.Outcome, "outcome": e.Truth}
		_, refused := once(ctx, s, func(x runner) (struct{}, error) {
			_, err := x.exec(ctx, s.fixed("correct edge", statements.CorrectEdge), values, nil)
			return struct{}{}, err
		})
		if refused == nil {
			waiters = append(waiters, e.Edge.Waiter)
		} else if err == nil {
			err = fmt.Errorf("task %d: %w", e.Member, refused)
		}
	}
	if n == MaxBatch && len(page) > 0 { // an engine that keeps a text where a number belongs sorts it behind all numbers
		end := page[len(page)-1]
		last = EdgeKey{end.Member, end.Edge.Waiter}
	}
	return last, waiters, err
}

// markActed records the outcome of an action in the edges of members. It reports whether some tasks are members.
func (s *Store) markActed(ctx context.Context, x runner, a Action, tasks []statements.AllowedTask) (bool, error) {
	outcome := map[Action]string{
		ActCancel: statements.OutcomeCancelled, ActExpire: statements.OutcomeCancelled, ActRetry: statements.OutcomePending,
		ActDelete: statements.OutcomeDeleted, ActDeleteAny: statements.OutcomeDeleted,
	}[a]
	n, err := s.markEdges(ctx, x, idsOf(tasks), outcome)
	return n > 0, err
}
