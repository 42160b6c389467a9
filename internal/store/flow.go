package store

import (
	"context"
	"fmt"

	"github.com/falldue/falldue/internal/statements"
)

type (
	// Waiter is a task that runs after others.
	Waiter = statements.Waiter
	// Edge is a task and one that runs after it.
	Edge = statements.Edge
)

// Flow says which of the entries of an enqueue run after which.
type Flow struct {
	// Waiters are the entries that run after others, with what they do at deaths.
	Waiters map[int]statements.OnDeath
	// Edges are the entries after which they run, as indices.
	Edges []FlowEdge
	// Beside is a task whose waiters run after all entries, too, or 0.
	Beside int64
}

// FlowEdge says that an entry runs after another one.
type FlowEdge struct{ Member, Waiter int }

// EnqueueFlow is [Store.Enqueue] for entries of which some run after others. Its error wraps
// [ErrNotFound] if nothing waits for flow.Beside any more.
func (s *Store) EnqueueFlow(ctx context.Context, tx Tx, entries []Entry, flow Flow) ([]int64, error) {
	enqueue := func(x runner) ([]int64, error) {
		ids, err := s.insert(ctx, x, entries)
		if err != nil {
			return nil, err
		}
		return ids, s.putFlow(ctx, x, ids, flow)
	}
	if tx != nil {
		ids, err := enqueue(unprepared{tx})
		return ids, s.explain(err)
	}
	return inTx(ctx, s, enqueue)
}

func (s *Store) putFlow(ctx context.Context, x runner, ids []int64, flow Flow) error {
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
	if flow.Beside != 0 {
		var of []int64
		err := x.query(ctx, s.fixed("pending edges", statements.PendingEdges), statements.Values{"id": flow.Beside}, nil, func(r row) error {
			var e Edge
			err := statements.EdgeColumns.Scan(r, &e)
			of = append(of, e.Waiter)
			return err
		})
		if err != nil {
			return err
		}
		if len(of) == 0 {
			return fmt.Errorf("%w: no task waits for task %d", ErrNotFound, flow.Beside)
		}
		for _, waiter := range of {
			for _, id := range ids {
				edges = append(edges, Edge{Member: id, Waiter: waiter})
			}
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

// flowLog is the participant that says of members how they have ended.
type flowLog struct{ s *Store }

func (l flowLog) joins(e *Settlement) bool {
	return e.Member && (e.State == statements.StateDone || e.State == statements.StateDead)
}

func (l flowLog) settle(ctx context.Context, x runner, batch []*Settlement) error {
	for _, outcome := range []string{statements.StateDone, statements.StateDead} {
		var ended []Key
		for _, e := range batch {
			if e.State == outcome {
				ended = append(ended, e.Key)
			}
		}
		if _, err := l.s.markEdges(ctx, x, ended, outcome); err != nil {
			return err
		}
	}
	return nil
}

// markEdges says how members have ended, and returns how many tasks run after them.
func (s *Store) markEdges(ctx context.Context, x runner, members []Key, outcome string) (n int64, err error) {
	err = inBatches(s, members, func(batch []Key) error {
		rows := statements.IDColumns.Rows(len(batch), func(i int) *Key { return &batch[i] })
		result, err := x.exec(ctx, s.batch("mark edges", len(batch), statements.MarkEdges), statements.Values{"outcome": outcome}, rows)
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
	rows := statements.IDColumns.Rows(len(members), func(i int) *Key { return &Key{TaskID: members[i]} })
	return reading(ctx, s, func(x runner) ([]int64, error) {
		return int64s(ctx, x, s.batch("waiters of", len(members), statements.WaitersOf), nil, rows)
	})
}

// Verdict is what is to become of a waiter.
type Verdict struct {
	ID    int64
	Queue string
	To    Fate
}

// Fate says what is to become of a waiter.
type Fate int

// What can become of a waiter.
const (
	StaysBlocked Fate = iota
	Opens
	IsCancelled
	IsForgotten // its task is not blocked any more
)

// Judge says what is to become of those of the tasks that wait for others. No transaction of
// the caller's that has settled a member may be open: of two that end the last members, the
// second one to be committed is seen.
func (s *Store) Judge(ctx context.Context, ids []int64) ([]Verdict, error) {
	rows := statements.IDColumns.Rows(len(ids), func(i int) *Key { return &Key{TaskID: ids[i]} })
	return s.judged(ctx, s.batch("waiters by id", len(ids), statements.WaitersByID), nil, rows)
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
		list[i] = Verdict{w.ID, w.Queue, fateOf(w)}
	}
	return list, err
}

func (s *Store) waiters(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) ([]statements.WaiterState, error) {
	return reading(ctx, s, func(x runner) (list []statements.WaiterState, err error) {
		err = x.query(ctx, stmt, values, rows, func(r row) error {
			list = append(list, statements.WaiterState{})
			return statements.WaiterStateColumns.Scan(r, &list[len(list)-1])
		})
		return list, err
	})
}

// OnDeath returns what a blocked task does at the deaths of its members. It reports false if
// the task is not blocked.
func (s *Store) OnDeath(ctx context.Context, id int64) (on statements.OnDeath, ok bool, err error) {
	rows := statements.IDColumns.Rows(1, func(int) *Key { return &Key{TaskID: id} })
	list, err := s.waiters(ctx, s.batch("waiters by id", 1, statements.WaitersByID), nil, rows)
	if err != nil || len(list) == 0 {
		return 0, false, err
	}
	return statements.OnDeath(list[0].OnDeath), true, nil
}

// fateOf says what becomes of a waiter.
func fateOf(w statements.WaiterState) Fate {
	pending, dead, gone := w.Pending != 0, w.Dead != 0, w.Deleted != 0
	failed := dead || gone || w.Cancelled != 0
	opens, cancelled := !pending && !failed, gone // nobody can retry what has gone
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

// EndWaiting makes waiters what they are to become: open or cancelled, or forgotten. All
// or none of them.
func (s *Store) EndWaiting(ctx context.Context, ids []int64, to Fate) error {
	keys := make([]Key, len(ids))
	for i, id := range ids {
		keys[i].TaskID = id
	}
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		return struct{}{}, inBatches(s, keys, func(batch []Key) error {
			rows := statements.IDColumns.Rows(len(batch), func(i int) *Key { return &batch[i] })
			var err error
			switch to {
			case Opens:
				_, err = x.exec(ctx, s.batch("open waiters", len(batch), statements.OpenWaiters), nil, rows)
			case IsCancelled:
				if _, err = x.exec(ctx, s.batch("cancel waiters", len(batch), statements.CancelWaiters), nil, rows); err == nil {
					_, err = s.markEdges(ctx, x, batch, statements.OutcomeCancelled)
				}
			}
			if err == nil {
				_, err = x.exec(ctx, s.batch("drop waiters", len(batch), statements.DropWaiters), nil, rows)
			}
			return err
		})
	})
	return err
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

// ForgetMembers deletes the edges of waiters that have gone, up to [MaxBatch] of them.
func (s *Store) ForgetMembers(ctx context.Context, waiters []int64) error {
	rows := statements.IDColumns.Rows(len(waiters), func(i int) *Key { return &Key{TaskID: waiters[i]} })
	stmt := s.batch("edges of", len(waiters), statements.EdgesOf)
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

// EdgeKey is the place of an edge among all.
type EdgeKey struct{ Member, Waiter int64 }

// CheckEdges compares up to [MaxBatch] edges after one with the tasks. It deletes those whose
// waiters have gone, and corrects those whose members were changed by somebody who did not
// say so, or deleted by the cleaner. It returns the last one, or the zero value after all,
// and the waiters of which it has corrected edges.
func (s *Store) CheckEdges(ctx context.Context, after EdgeKey) (last EdgeKey, waiters []int64, err error) {
	var gone []Edge
	var wrong []statements.CheckedEdge
	n := 0
	values := statements.Values{"task_id": after.Member, "waiter": after.Waiter, "limit": MaxBatch}
	err = s.read(ctx, s.fixed("edge page", statements.EdgePage), values, func() { gone, wrong, n = nil, nil, 0 }, func(r row) error {
		var e statements.CheckedEdge
		err := statements.CheckedEdgeColumns.Scan(r, &e)
		last, n = EdgeKey{e.Member, e.Edge.Waiter}, n+1
		switch {
		case e.Waiter == "":
			gone = append(gone, e.Edge)
		case e.Waiter == statements.StateBlocked && e.Outcome != e.Truth && e.Outcome != statements.StateDone: // done tasks are deleted
			wrong = append(wrong, e)
		}
		return err
	})
	if err != nil {
		return after, nil, err
	}
	if len(gone) > 0 {
		if err := s.dropEdges(ctx, gone); err != nil {
			return last, nil, err
		}
	}
	for _, e := range wrong {
		values := statements.Values{"task_id": e.Member, "waiter": e.Edge.Waiter, "was": e.Outcome, "outcome": e.Truth}
		_, err := once(ctx, s, func(x runner) (struct{}, error) {
			_, err := x.exec(ctx, s.fixed("correct edge", statements.CorrectEdge), values, nil)
			return struct{}{}, err
		})
		if err != nil {
			return last, waiters, err
		}
		waiters = append(waiters, e.Edge.Waiter)
	}
	if n < MaxBatch {
		last = EdgeKey{}
	}
	return last, waiters, nil
}

// markActed says of members what an action has made of them. It reports whether there are any.
func (s *Store) markActed(ctx context.Context, x runner, a Action, tasks []statements.AllowedTask) (bool, error) {
	outcome := map[Action]string{
		ActCancel: statements.OutcomeCancelled, ActRetry: statements.OutcomePending,
		ActDelete: statements.OutcomeDeleted, ActDeleteAny: statements.OutcomeDeleted,
	}[a]
	keys := make([]Key, len(tasks))
	for i, t := range tasks {
		keys[i] = t.Key
	}
	n, err := s.markEdges(ctx, x, keys, outcome)
	return n > 0, err
}
