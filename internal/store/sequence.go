package store

import (
	"context"
	"maps"
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
		if q := quotas[l.Name]; q != nil && l.Form.Ordered() && (first == nil || first.holder == nil) {
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
	if sequenceOf(p.Sources[wanted[0].source], quotas) == nil {
		return s.findIn(ctx, x, p, wanted)
	}
	var places []int
	for _, w := range wanted {
		places = append(places, w.source)
	}
	return s.findNext(ctx, x, p, places, quotas)
}

// findNext finds the tasks that come next in the sequences of sources, and that are due: in each of the sequences the
// task that has begun, or else the first task. No two of the sources are in one sequence, and none is held. findNext
// looks for the tasks without locks, so that it does not skip a task whose row another transaction has locked.
func (s *Store) findNext(ctx context.Context, x runner, p ClaimParams, places []int, quotas map[string]*quota) (found []*Claim, err error) {
	next, of := map[int64]Candidate{}, map[int64]int{} // by the tasks' ids
	err = s.nextTasks(ctx, x, p, places, quotas, func(place int, c Candidate) { next[c.TaskID], of[c.TaskID] = c, place })
	if err != nil {
		return nil, err
	}
	var scanner claimScanner
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(next)), MaxBatch) {
		rows := statements.FenceColumns.Rows(len(keys), func(i int) *Key { return &Key{TaskID: keys[i], Fence: next[keys[i]].Fence} })
		err := x.query(ctx, s.batch("pick", len(keys), statements.Pick), nil, rows, func(r row) error {
			c, err := scanner.read(r)
			if err != nil || c.Anchor != max(next[c.ID].Anchor, -1<<62) {
				return err
			}
			c.Place = of[c.ID] + 1
			c.comeFrom(p.Sources[of[c.ID]])
			found = append(found, c)
			delete(next, c.ID)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for id, c := range next { // these tasks are locked or changed elsewhere, and must not be skipped
		if q := sequenceOf(p.Sources[of[id]], quotas); q.holder == nil {
			q.holder = &statements.Permit{Key: c.Key}
		}
	}
	return found, nil
}

// nextTasks calls f with the next task of each sequence of sources, if that task is due.
func (s *Store) nextTasks(ctx context.Context, x runner, p ClaimParams, places []int, quotas map[string]*quota, f func(place int, c Candidate)) error {
	most := len(places)
	if !statements.ClaimsAtOnce(s.server) {
		most = unitedAtOnce
	}
	for list := range slices.Chunk(places, most) {
		sources, begun := make([]Source, len(list)), make([]int64, len(list))
		for i, place := range list {
			sources[i] = p.Sources[place]
			if h := sequenceOf(sources[i], quotas).holder; h != nil {
				begun[i] = h.TaskID
			}
		}
		stmt, rows := s.nextTasksStmt(sources, begun)
		err := x.query(ctx, stmt, statements.Values{"queue": p.Queue}, rows, func(r row) error {
			place, err := r.int(len(r) - 1)
			if err != nil || place < 0 || int(place) >= len(list) {
				return err
			}
			var c Candidate
			if err := statements.CandidateColumns.Scan(r[:len(r)-1], &c); err != nil {
				return err
			}
			f(list[place], c)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nextTasksStmt returns the statement that finds the next tasks of sequences, with its rows. begun has the tasks that
// have begun.
func (s *Store) nextTasksStmt(sources []Source, begun []int64) (statements.Stmt, []statements.Row) {
	delays := delaysOf(sources)
	lanes := make([]statements.SequenceLane, len(sources))
	for i, l := range wantedLanes(sources, delays) {
		lanes[i] = statements.SequenceLane{Lane: l.Lane, Formula: l.Formula, Begun: begun[i]}
	}
	size := 0
	if !statements.ClaimsAtOnce(s.server) {
		size = statements.SizeFor(len(lanes))
	}
	stmt := s.stmt(stmtKey{name: "next tasks", size: size, formulas: s.numbersOf(delays)}, func() statements.Stmt {
		return statements.NextTasks(s.server, claimParams(s.tables, delays, false), size)
	})
	return stmt, statements.SequenceColumns.Rows(len(lanes), func(i int) *statements.SequenceLane { return &lanes[i] })
}
