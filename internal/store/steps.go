package store

import (
	"context"

	"github.com/falldue/falldue/internal/statements"
)

type (
	// StepRow is a step of a task to be stored.
	StepRow = statements.StepRow
	// StoredStep is a step as it is stored.
	StoredStep = statements.StoredStep
)

// PutStep stores a step of a claim that worker holds, over an earlier state of the step. It stores
// nothing and returns false if the claim no longer belongs to worker. It locks the row of the task, so
// that no other worker has the task before the step is stored. tx is the caller's transaction, or nil.
func (s *Store) PutStep(ctx context.Context, tx Tx, worker string, step *StepRow) (mine bool, err error) {
	if tx != nil {
		mine, err = s.putStep(ctx, unprepared{tx}, worker, step)
		return mine, s.explain(err)
	}
	return inTx(ctx, s, func(x runner) (bool, error) { return s.putStep(ctx, x, worker, step) })
}

func (s *Store) putStep(ctx context.Context, x runner, worker string, step *StepRow) (mine bool, err error) {
	values := statements.Values{"worker": worker}
	statements.SetStep(values, step)
	held, err := int64s(ctx, x, s.fixed("hold claim", statements.HoldClaim), values, nil)
	if err != nil || len(held) == 0 {
		return false, err
	}
	_, err = x.exec(ctx, s.fixed("put step", statements.PutStep), values, nil)
	return err == nil, err
}

// Steps returns the steps of a task, in their order.
func (s *Store) Steps(ctx context.Context, id int64) (list []StoredStep, err error) {
	err = s.read(ctx, s.fixed("read steps", statements.ReadSteps), statements.Values{"id": id}, func() { list = nil }, func(r row) error {
		list = append(list, StoredStep{})
		return statements.StoredStepColumns.Scan(r, &list[len(list)-1])
	})
	return list, err
}

func (s *Store) dropSteps(ctx context.Context, x runner, of []Key) error {
	if len(of) == 0 {
		return nil
	}
	rows := statements.IDColumns.Rows(len(of), func(i int) *Key { return &of[i] })
	_, err := x.exec(ctx, s.batch("drop steps", len(of), statements.DropSteps), nil, rows)
	return err
}

// countLost counts lost claims in the steps in which they were lost. It returns the names of the steps by the tasks' IDs.
func (s *Store) countLost(ctx context.Context, x runner, claims []Key) (map[int64]string, error) {
	names := map[int64]string{}
	rows := statements.FenceColumns.Rows(len(claims), func(i int) *Key { return &claims[i] })
	err := x.query(ctx, s.batch("lost steps", len(claims), statements.LostSteps), nil, rows, func(r row) error {
		id, err := r.int(0)
		names[id] = r.text(1)
		return err
	})
	if err != nil || len(names) == 0 {
		return nil, err
	}
	_, err = x.exec(ctx, s.batch("count crashes", len(claims), statements.CountCrashes), nil, rows)
	return names, err
}

// DropOrphanedSteps reads up to MaxBatch owners of steps after one, and drops the steps of tasks that are gone.
// It returns the last owner that it read, or 0 at the end, and the number of tasks that are gone. A task leaves
// its steps behind if its last run used none.
func (s *Store) DropOrphanedSteps(ctx context.Context, after int64) (last int64, dropped int, err error) {
	var gone []Key
	n := 0
	err = s.read(ctx, s.fixed("step owners", statements.StepOwners), statements.Values{"after": after, "limit": MaxBatch}, func() { gone, n, last = nil, 0, 0 }, func(r row) error {
		id, err := r.int(0)
		if err != nil {
			return err
		}
		missing, err := r.int(1)
		if missing == 1 {
			gone = append(gone, Key{TaskID: id})
		}
		last, n = id, n+1
		return err
	})
	if err != nil {
		return after, 0, err
	}
	if n < MaxBatch {
		last = 0
	}
	_, err = inTx(ctx, s, func(x runner) (struct{}, error) { return struct{}{}, s.dropSteps(ctx, x, gone) })
	return last, len(gone), err
}

// ForgetSteps drops the steps of a task that does not run, and returns false if the task runs or there
// is no such task.
func (s *Store) ForgetSteps(ctx context.Context, id int64) (done bool, err error) {
	return inTx(ctx, s, func(x runner) (bool, error) {
		found, err := s.allowed(ctx, x, ActParams{Action: ActDelete, IDs: []int64{id}}, statements.LockedInTurn)
		if err != nil || len(found) == 0 {
			return false, err
		}
		return true, s.dropSteps(ctx, x, []Key{found[0].Key})
	})
}

// stepLog is the participant that drops the steps of tasks that end for good or begin anew.
type stepLog struct{ s *Store }

func (l stepLog) joins(e *Settlement) bool { return e.ForgetSteps }

func (l stepLog) settle(ctx context.Context, x runner, batch []*Settlement) error {
	keys := make([]Key, len(batch))
	for i, e := range batch {
		keys[i] = e.Key
	}
	return l.s.dropSteps(ctx, x, keys)
}
