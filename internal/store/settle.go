package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
)

// Settlement is how one claim ends.
type Settlement struct {
	statements.Settlement
	Records       []Record  // attempts to record
	ForgetRecords bool      // if the task is deleted, delete its recorded attempts
	RetainDone    bool      // if the task is done, keep it
	Progress      *Progress // reported last, and not stored yet; or nil
	HasProgress   bool      // the run has reported progress
	ForgetSteps   bool      // drop the steps of the task
	Member        bool      // others run after the task
	Waiter        bool      // the task ran after others
	MaybeSettled  bool      // the handler may have settled the task with SettleTx
}

// ToASCII makes the texts of a settlement storable in any session. No decision depends on these texts.
func (e *Settlement) ToASCII() {
	e.Error.V, e.Result.V = storable.ASCII(e.Error.V), storable.ASCII(e.Result.V)
	e.Records = slices.Clone(e.Records)
	for i := range e.Records {
		r := &e.Records[i]
		r.Error, r.Stack.V = storable.ASCII(r.Error), storable.ASCII(r.Stack.V)
	}
	if e.Progress != nil {
		p := *e.Progress
		p.Message = storable.ASCII(p.Message)
		e.Progress = &p
	}
}

// Unsettled has the ids of tasks that a settle or an extension did not change.
type Unsettled struct {
	Lost   []int64 // the claim no longer belongs to the worker
	Locked []int64 // another transaction has locked the row
}

// errMismatch rolls back a settle that did not match all its rows, on an engine whose
// statements do not return the ids of the rows they matched.
var errMismatch = errors.New("some claims are no longer owned")

// Settle settles claims of worker. It may wait for rows that another transaction has locked;
// [Store.SettleUnlocked] does not wait if the engine can skip them. While all connections of
// the pool are in use, Settle does not wait either, since leases need the reserve.
func (s *Store) Settle(ctx context.Context, worker string, batch []*Settlement) (Unsettled, error) {
	if s.reserve.Load() != nil && s.Busy() {
		return s.SettleUnlocked(ctx, worker, batch)
	}
	if s.server.Caps.UpdateReturning {
		return s.settleReturning(ctx, worker, batch)
	}
	if !slices.ContainsFunc(batch, func(e *Settlement) bool { return e.MaybeSettled }) {
		if err := s.settleAll(ctx, worker, batch); !errors.Is(err, errMismatch) {
			return Unsettled{}, err
		}
	}
	return s.SettleUnlocked(ctx, worker, batch)
}

// settleReturning settles on engines whose statements return the ids of the rows that
// they matched.
func (s *Store) settleReturning(ctx context.Context, worker string, batch []*Settlement) (Unsettled, error) {
	list := s.settlings(worker, batch)
	settle := func(x runner) (Unsettled, error) {
		_, lost, err := s.runSettle(ctx, x, batch, list)
		return Unsettled{Lost: lost}, err
	}
	if len(list) == 1 && !s.joined(batch) {
		return once(ctx, s, settle)
	}
	return inTx(ctx, s, settle)
}

// settleAll settles a whole batch, or settles nothing and returns errMismatch. A single task
// takes a single statement, if participants don't join: the statement changes its row or none. That saves
// the round trips of a transaction.
func (s *Store) settleAll(ctx context.Context, worker string, batch []*Settlement) error {
	list, way := s.settlings(worker, batch), inTx[int]
	if len(batch) == 1 && !s.joined(batch) {
		way = once[int]
	}
	_, err := way(ctx, s, func(x runner) (int, error) {
		matched, _, err := s.runSettle(ctx, x, batch, list)
		if err == nil && matched != len(batch) {
			err = errMismatch
		}
		return matched, err
	})
	return err
}

// SettleUnlocked settles claims of worker, except claims whose rows another transaction has
// locked. It waits for locked rows only if the engine cannot skip them.
func (s *Store) SettleUnlocked(ctx context.Context, worker string, batch []*Settlement) (Unsettled, error) {
	return inTx(s.urgent(ctx), s, func(x runner) (Unsettled, error) {
		free, left, err := s.lock(ctx, x, worker, fencesOf(batch))
		if err != nil {
			return left, err
		}
		live := slices.DeleteFunc(slices.Clone(batch), func(e *Settlement) bool { return !free[e.TaskID] })
		_, lost, err := s.runSettle(ctx, x, live, s.settlings(worker, live))
		left.Lost = append(left.Lost, lost...)
		return left, err
	})
}

// SettleTx settles one claim inside the caller's transaction. It returns false if the
// claim no longer belongs to worker.
func (s *Store) SettleTx(ctx context.Context, tx Tx, worker string, e *Settlement) (bool, error) {
	batch := []*Settlement{e}
	matched, _, err := s.runSettle(ctx, unprepared{tx}, batch, s.settlings(worker, batch))
	return matched == 1, s.explain(err)
}

// lock locks the rows of claims that worker owns, except rows that another transaction has
// locked. It returns the ids of the rows that it has locked as free, and all other ids as rest.
func (s *Store) lock(ctx context.Context, x runner, worker string, fences []statements.Row) (free map[int64]bool, rest Unsettled, err error) {
	free, err = s.owned(ctx, x, worker, fences, true)
	if err != nil || len(free) == len(fences) {
		return free, rest, err
	}
	var mine map[int64]bool
	if s.server.Caps.SkipLocked {
		if mine, err = s.owned(ctx, x, worker, fences, false); err != nil {
			return nil, rest, err
		}
	}
	for _, f := range fences {
		switch id := f.ID(); {
		case free[id]:
		case mine[id]:
			rest.Locked = append(rest.Locked, id)
		default:
			rest.Lost = append(rest.Lost, id)
		}
	}
	return free, rest, nil
}

// deletes reports whether a settlement deletes the task.
func (e *Settlement) deletes() bool { return e.State == statements.StateDone && !e.RetainDone }

// alike reports whether two settlements change their tasks in the same way.
func (e *Settlement) alike(other *Settlement) bool {
	a, b := e.Settlement, other.Settlement
	a.Key = b.Key
	return a == b
}

// settling is a statement that settles tasks.
type settling struct {
	stmt   statements.Stmt
	values statements.Values
	rows   []statements.Row
}

// minAlike is the least number of tasks that end alike for which a batch is divided.
const minAlike = 16

// settlings returns the statements that settle a batch. A statement for tasks that end alike
// costs less than one for any tasks, since it has their common end only once. In a transaction that is
// needed anyway, the tasks that stay are divided if more than half of them end alike.
func (s *Store) settlings(worker string, batch []*Settlement) (list []settling) {
	gone, stay := partedBy(batch, (*Settlement).deletes)
	if len(gone) > 0 {
		list = append(list, s.settlingGone(worker, gone))
	}
	if len(stay) == 0 {
		return list
	}
	alike, others := partedBy(stay, mostCommon(stay).alike)
	if len(others) == 0 {
		return append(list, s.settlingAlike(worker, alike))
	}
	inTx := !s.server.Caps.UpdateReturning || len(gone) > 0 || s.joined(batch)
	if !inTx || len(alike) < minAlike || len(alike) <= len(others) {
		return append(list, s.settlingEach(worker, stay)...)
	}
	return append(append(list, s.settlingAlike(worker, alike)), s.settlingEach(worker, others)...)
}

// partedBy divides a batch into the settlements for which is returns true and the others.
func partedBy(batch []*Settlement, is func(*Settlement) bool) (yes, no []*Settlement) {
	for _, e := range batch {
		if is(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	return yes, no
}

// mostCommon returns one of the settlements that are alike, if these are more than half of a batch, or
// else any settlement. Each pair of settlements that differ cancels out.
func mostCommon(batch []*Settlement) (most *Settlement) {
	votes := 0
	for _, e := range batch {
		switch {
		case votes == 0:
			most, votes = e, 1
		case e.alike(most):
			votes++
		default:
			votes--
		}
	}
	return most
}

func (s *Store) settlingGone(worker string, batch []*Settlement) settling {
	return settling{s.batch("delete", len(batch), statements.Delete), statements.Values{"worker": worker}, fencesOf(batch)}
}

func (s *Store) settlingAlike(worker string, batch []*Settlement) settling {
	values := statements.Values{"worker": worker}
	statements.SetSettlement(values, &batch[0].Settlement)
	return settling{s.batch("settle alike", len(batch), statements.SettleAlike), values, fencesOf(batch)}
}

func (s *Store) settlingEach(worker string, batch []*Settlement) (list []settling) {
	for len(batch) > 0 {
		part := batch
		row := func(i int) *statements.Settlement { return &part[i].Settlement }
		n := fitting(s, statements.SettleColumns, len(batch), row)
		list = append(list, settling{s.batch("settle", n, statements.Settle), statements.Values{"worker": worker}, statements.SettleColumns.Rows(n, row)})
		batch = batch[n:]
	}
	return list
}

// joined reports whether participants join in settling a batch.
func (s *Store) joined(batch []*Settlement) bool {
	return slices.ContainsFunc(batch, func(e *Settlement) bool {
		return slices.ContainsFunc(s.participants, func(p participant) bool { return p.joins(e) })
	})
}

// runSettle runs the statements that settle a batch, and then its participants. It
// returns how many rows matched and, on engines that return ids, the ids of the tasks
// whose rows did not.
func (s *Store) runSettle(ctx context.Context, x runner, batch []*Settlement, list []settling) (matched int, lost []int64, err error) {
	for _, one := range list {
		n, missing, err := s.change(ctx, x, one.stmt, one.values, one.rows)
		if err != nil {
			return 0, nil, err
		}
		matched, lost = matched+n, append(lost, missing...)
	}
	if matched == 0 {
		return 0, lost, nil // lost is nil on engines that return no ids
	}
	return matched, lost, s.join(ctx, x, batch, lost)
}

// change runs an UPDATE or DELETE over a batch of claims. It returns how many rows
// matched and, on engines that return ids, the ids of the tasks whose rows did not.
func (s *Store) change(ctx context.Context, x runner, stmt statements.Stmt, values statements.Values, rows []statements.Row) (matched int, missing []int64, err error) {
	if !s.server.Caps.UpdateReturning {
		result, err := x.exec(ctx, stmt, values, rows)
		if err != nil {
			return 0, nil, err
		}
		n, err := result.RowsAffected()
		return int(n), nil, err
	}
	ids, err := int64s(ctx, x, stmt, values, rows)
	if err != nil || len(ids) == len(rows) {
		return len(ids), nil, err
	}
	hit := SetOf(ids)
	for _, r := range rows {
		if !hit[r.ID()] {
			missing = append(missing, r.ID())
		}
	}
	return len(ids), missing, nil
}

// Extend moves the end of the leases of claims to lease from now. It does not change rows that
// another transaction has locked: no worker can claim these tasks while the rows are locked.
func (s *Store) Extend(ctx context.Context, worker string, lease time.Duration, claims []Key) (Unsettled, error) {
	return s.extend(ctx, worker, lease, claims, "extend", statements.Extend)
}

// ExtendLive is Extend for claims under limits. An expired lease stays expired.
func (s *Store) ExtendLive(ctx context.Context, worker string, lease time.Duration, claims []Key) (Unsettled, error) {
	return s.extend(ctx, worker, lease, claims, "extend live", statements.ExtendLive)
}

func (s *Store) extend(ctx context.Context, worker string, lease time.Duration, claims []Key, name string, extend func(dialect.Server, dialect.Tables, int) statements.Stmt) (Unsettled, error) {
	fences := statements.FenceColumns.Rows(len(claims), func(i int) *Key { return &claims[i] })
	return inTx(s.urgent(ctx), s, func(x runner) (Unsettled, error) {
		free, left, err := s.lock(ctx, x, worker, fences)
		if err != nil || len(free) == 0 {
			return left, err
		}
		live := slices.DeleteFunc(slices.Clone(fences), func(f statements.Row) bool { return !free[f.ID()] })
		values := statements.Values{"worker": worker, "lease": lease.Microseconds()}
		matched, lost, err := s.change(ctx, x, s.batch(name, len(live), extend), values, live)
		if err == nil && matched < len(live) && !s.server.Caps.UpdateReturning {
			lost, err = s.over(ctx, x, worker, live)
		}
		left.Lost = append(left.Lost, lost...)
		return left, err
	})
}

// over returns the task ids of the claims that worker no longer owns, and of the claims whose
// leases have expired.
func (s *Store) over(ctx context.Context, x runner, worker string, fences []statements.Row) (list []int64, err error) {
	ids, err := int64s(ctx, x, s.batch("live", len(fences), statements.Live), statements.Values{"worker": worker}, fences)
	live := SetOf(ids)
	for _, f := range fences {
		if !live[f.ID()] {
			list = append(list, f.ID())
		}
	}
	return list, err
}

// fencesOf returns rows that identify the claims of settlements.
func fencesOf(batch []*Settlement) []statements.Row {
	return statements.FenceColumns.Rows(len(batch), func(i int) *Key { return &batch[i].Key })
}
