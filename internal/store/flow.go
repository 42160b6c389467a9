package store

import (
	"context"
	"fmt"

	"github.com/falldue/falldue/dialect"
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
		rows := statements.WaiterColumns[:2].Rows(len(batch), func(i int) *Waiter { return &batch[i] })
		_, err := x.exec(ctx, s.batch("put waiters", len(batch), statements.PutWaiters), nil, rows)
		return err
	})
	if err != nil {
		return err
	}
	return inBatches(s, edges, func(batch []Edge) error {
		rows := statements.EdgeColumns[:2].Rows(len(batch), func(i int) *Edge { return &batch[i] })
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
		if err := l.s.markEdges(ctx, x, ended, outcome); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) markEdges(ctx context.Context, x runner, members []Key, outcome string) error {
	if len(members) == 0 {
		return nil
	}
	rows := statements.IDColumns.Rows(len(members), func(i int) *Key { return &members[i] })
	_, err := x.exec(ctx, s.batch("mark edges", len(members), statements.MarkEdges), statements.Values{"outcome": outcome}, rows)
	return err
}

// WaitersOf returns the ids of the tasks that run after some of the members, up to [MaxBatch].
func (s *Store) WaitersOf(ctx context.Context, members []int64) (ids []int64, err error) {
	rows := statements.IDColumns.Rows(len(members), func(i int) *Key { return &Key{TaskID: members[i]} })
	return reading(ctx, s, func(x runner) ([]int64, error) {
		return int64s(ctx, x, s.batch("waiters of", len(members), statements.WaitersOf), nil, rows)
	})
}

// Verdict is what has become of a waiter.
type Verdict struct {
	Opened, Cancelled bool
	Queue             string
	// Pending is a member that has not ended, from which to look the next time, or 0.
	Pending int64
}

// Judge opens a waiter, or cancels it, if its members allow that now. No transaction of the
// caller's that has settled a member may be open. since is the Pending of an earlier verdict,
// or 0.
func (s *Store) Judge(ctx context.Context, id, since int64) (v Verdict, err error) {
	var w Waiter
	err = s.read(ctx, s.fixed("read waiter", statements.ReadWaiter), statements.Values{"id": id}, func() { w = Waiter{} }, func(r row) error {
		return statements.WaiterColumns.Scan(r, &w)
	})
	if err != nil || w.State != statements.StateBlocked {
		return v, err
	}
	v.Queue = w.Queue
	on := statements.OnDeath(w.OnDeath)
	if on == statements.DeathWait || on == statements.DeathRun {
		if v.Pending, err = s.pendingMember(ctx, id, since); err != nil || v.Pending != 0 {
			return v, err
		}
	}
	n, err := s.CountEdges(ctx, id)
	if err != nil {
		return v, err
	}
	open, cancel := judge(on, n)
	switch {
	case open:
		v.Opened, err = s.changesTask(ctx, "open waiter", statements.OpenWaiter, id)
	case cancel:
		v.Cancelled, err = s.cancelWaiter(ctx, id)
	case on == statements.DeathWait || on == statements.DeathRun: // one before since has been retried
		v.Pending, err = s.pendingMember(ctx, id, 0)
	}
	return v, err
}

// judge says what a waiter does whose members have ended as n says.
func judge(on statements.OnDeath, n map[string]int64) (open, cancel bool) {
	pending, dead, gone := n[statements.OutcomePending], n[statements.StateDead], n[statements.OutcomeDeleted]
	failed := dead + gone + n[statements.OutcomeCancelled]
	switch on {
	case statements.DeathRun:
		return pending == 0, false
	case statements.DeathFirst:
		return dead > 0, pending == 0
	case statements.DeathCancel:
		return pending+failed == 0, failed > 0
	}
	return pending+failed == 0, gone > 0 // nobody can retry what has gone
}

func (s *Store) pendingMember(ctx context.Context, waiter, since int64) (id int64, err error) {
	err = s.read(ctx, s.fixed("pending member", statements.PendingMember), statements.Values{"waiter": waiter, "since": since}, func() { id = 0 }, func(r row) error {
		id, err = r.int(0)
		return err
	})
	return id, err
}

// changesTask runs a statement on a task, and reports whether it changed its row.
func (s *Store) changesTask(ctx context.Context, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, id int64) (bool, error) {
	return once(ctx, s, func(x runner) (bool, error) {
		return s.changesSchedule(ctx, x, name, make, statements.Values{"id": id})
	})
}

// cancelWaiter cancels a waiter, and says so to those that run after it.
func (s *Store) cancelWaiter(ctx context.Context, id int64) (bool, error) {
	return inTx(ctx, s, func(x runner) (bool, error) {
		done, err := s.changesSchedule(ctx, x, "cancel waiter", statements.CancelWaiter, statements.Values{"id": id})
		if err != nil || !done {
			return false, err
		}
		return true, s.markEdges(ctx, x, []Key{{TaskID: id}}, statements.OutcomeCancelled)
	})
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

// Members returns up to limit members of a waiter, after the one with the id after.
func (s *Store) Members(ctx context.Context, waiter, after int64, limit int) (list []Edge, err error) {
	return s.edges(ctx, "members", statements.Members, waiter, after, limit)
}

func (s *Store) edges(ctx context.Context, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, waiter, after int64, limit int) (list []Edge, err error) {
	values := statements.Values{"waiter": waiter, "after": after, "limit": limit}
	err = s.read(ctx, s.fixed(name, make), values, func() { list = nil }, func(r row) error {
		list = append(list, Edge{})
		return statements.EdgeColumns.Scan(r, &list[len(list)-1])
	})
	return list, err
}

// Waiters returns up to [MaxBatch] waiters after the one with the id after.
func (s *Store) Waiters(ctx context.Context, after int64) (list []Waiter, err error) {
	values := statements.Values{"after": after, "limit": MaxBatch}
	err = s.read(ctx, s.fixed("waiters", statements.Waiters), values, func() { list = nil }, func(r row) error {
		list = append(list, Waiter{})
		return statements.WaiterColumns.Scan(r, &list[len(list)-1])
	})
	return list, err
}

// CorrectEdges looks at the members of a waiter that were cancelled, deleted or retried.
func (s *Store) CorrectEdges(ctx context.Context, waiter int64) error {
	for after := int64(0); ; {
		stale, err := s.edges(ctx, "stale edges", statements.StaleEdges, waiter, after, MaxBatch)
		if err != nil || len(stale) == 0 {
			return err
		}
		_, err = inTx(ctx, s, func(x runner) (struct{}, error) {
			for _, e := range stale {
				values := statements.Values{"task_id": e.Member, "waiter": waiter, "outcome": e.Outcome}
				if _, err := x.exec(ctx, s.fixed("correct edge", statements.CorrectEdge), values, nil); err != nil {
					return struct{}{}, err
				}
			}
			return struct{}{}, nil
		})
		if err != nil {
			return err
		}
		after = stale[len(stale)-1].Member
	}
}

// DropWaiter forgets a waiter and its members.
func (s *Store) DropWaiter(ctx context.Context, id int64) error {
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		if _, err := x.exec(ctx, s.fixed("drop edges", statements.DropEdges), statements.Values{"waiter": id}, nil); err != nil {
			return struct{}{}, err
		}
		_, err := x.exec(ctx, s.fixed("drop waiter", statements.DropWaiter), statements.Values{"id": id}, nil)
		return struct{}{}, err
	})
	return err
}
