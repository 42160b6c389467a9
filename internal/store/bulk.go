package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Action is a change of tasks from outside their runs.
type Action = statements.Action

// The actions.
const (
	ActCancel    = statements.ActCancel
	ActDelete    = statements.ActDelete
	ActDeleteAny = statements.ActDeleteAny
	ActRetry     = statements.ActRetry
	ActRunNow    = statements.ActRunNow
	ActExpire    = statements.ActExpire
)

// ActParams select an action and tasks.
type ActParams struct {
	Action Action
	IDs    []int64 // up to MaxBatch
	State  string  // only tasks in this state, unless it is ""; a retry of done tasks needs it
	Fence  *int64  // only tasks with this fence, unless it is nil
	// Wait makes Act wait for rows that other transactions have locked. Otherwise Act leaves
	// these rows out, where the engine can do that.
	Wait bool
	// Waits are the times from now until retried tasks, and tasks to run now, fall due, by task id.
	Waits map[int64]time.Duration
	// InPlace gives retried tasks the places in their sequences that they had when they were enqueued. Waits are unused then.
	InPlace bool
	// Payload replaces the payload of a single retried task, unless it is "".
	Payload string
	// Why is the error of tasks that expire.
	Why string
}

// Acted is the result of [Store.Act].
type Acted struct {
	Done []int64 // the ids of the tasks
	// Exists has the errors of tasks that were not retried because other tasks hold their unique keys, by task id.
	Exists map[int64]*ExistsError
	// Members reports whether other tasks run after some of the tasks.
	Members bool
}

// Act applies an action to the tasks that the action is allowed for, in one transaction.
// Claims of cancelled and deleted tasks end, and changes notify the tasks' workers. Retried
// tasks take their unique keys back.
func (s *Store) Act(ctx context.Context, p ActParams) (Acted, error) {
	held := statements.LockedOrSkipped
	if p.Wait {
		held = statements.LockedInTurn
	}
	for try := 1; ; try++ {
		done, err := inTx(ctx, s, func(x runner) (a Acted, err error) {
			found, err := s.allowed(ctx, x, p, held)
			if err != nil {
				return a, err
			}
			if p.Fence != nil {
				found = slices.DeleteFunc(found, func(t statements.AllowedTask) bool { return t.Fence != *p.Fence })
			}
			if p.Action == ActRetry {
				if a.Exists, err = s.takeBack(ctx, x, found); err != nil {
					return a, err
				}
				found = slices.DeleteFunc(found, func(t statements.AllowedTask) bool { return a.Exists[t.TaskID] != nil })
			}
			a.Done = idsOf(found)
			if len(found) == 0 {
				return a, nil
			}
			if err := s.act(ctx, x, p, found); err != nil {
				return a, err
			}
			if p.Action != ActRunNow {
				a.Members, err = s.markActed(ctx, x, p.Action, found)
			}
			return a, err
		})
		if !errors.Is(err, errMismatch) || try == contentionTries || !s.backOff(ctx, try) {
			return done, err
		}
	}
}

// Allowed returns the ids of those tasks for which an action is allowed.
func (s *Store) Allowed(ctx context.Context, p ActParams) ([]int64, error) {
	return reading(ctx, s, func(x runner) ([]int64, error) {
		found, err := s.allowed(ctx, x, p, statements.Unlocked)
		return idsOf(found), err
	})
}

func idsOf(tasks []statements.AllowedTask) []int64 {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.TaskID
	}
	return ids
}

// allowed returns the tasks for which an action is allowed.
func (s *Store) allowed(ctx context.Context, x runner, p ActParams, locking statements.Locking) (found []statements.AllowedTask, err error) {
	params := statements.AllowedParams{Action: p.Action, Locking: locking, State: p.State != ""}
	size := s.size(len(p.IDs))
	stmt := s.stmt(stmtKey{name: "allowed", size: size, allowed: params}, func() statements.Stmt {
		return statements.Allowed(s.server, s.tables, params, size)
	})
	ids := slices.Sorted(slices.Values(p.IDs)) // locks are taken in this order
	rows := statements.IDColumns.Rows(len(ids), func(i int) *Key { return &Key{TaskID: ids[i]} })
	err = x.query(ctx, stmt, statements.Values{"state": p.State}, rows, func(r row) error {
		found = append(found, statements.AllowedTask{})
		return statements.AllowedColumns.Scan(r, &found[len(found)-1])
	})
	return found, err
}

// act applies an action to tasks. It returns errMismatch if some have changed in the meantime, as
// they can where the engine locks no rows.
func (s *Store) act(ctx context.Context, x runner, p ActParams, found []statements.AllowedTask) error {
	keys := make([]Key, len(found))
	for i, t := range found {
		keys[i] = t.Key
	}
	n, fences := len(keys), statements.FenceColumns.Rows(len(keys), func(i int) *Key { return &keys[i] })
	switch p.Action {
	case ActRetry:
		return s.revive(ctx, x, p, found, s.batch("retry tasks", n, statements.RetryTasks))
	case ActRunNow:
		return s.revive(ctx, x, p, found, s.batch("run tasks", n, statements.RunTasks))
	case ActCancel:
		if err := s.matchAll(ctx, x, s.batch("cancel tasks", n, statements.CancelTasks), nil, fences); err != nil {
			return err
		}
		if err := s.recordLost(ctx, x, found); err != nil {
			return err
		}
	case ActExpire:
		if err := s.matchAll(ctx, x, s.batch("expire tasks", n, statements.ExpireTasks), statements.Values{"error": p.Why}, fences); err != nil {
			return err
		}
	default:
		size := s.size(n)
		drop := s.stmt(stmtKey{name: "delete tasks", size: size, allowed: statements.AllowedParams{Action: p.Action}}, func() statements.Stmt {
			return statements.DeleteTasks(s.server, s.tables, p.Action, size)
		})
		if err := s.matchAll(ctx, x, drop, nil, fences); err != nil {
			return err
		}
		ids := statements.IDColumns.Rows(n, func(i int) *Key { return &keys[i] })
		if _, err := x.exec(ctx, s.batch("forget", n, statements.Forget), nil, ids); err != nil {
			return err
		}
		if err := errors.Join(s.dropProgress(ctx, x, keys), s.dropSteps(ctx, x, keys)); err != nil {
			return err
		}
		if err := s.releaseKeys(ctx, x, found); err != nil {
			return err
		}
	}
	if err := s.keepPermits(ctx, x, found); err != nil {
		return err
	}
	return s.endClaims(ctx, x, found)
}

// matchAll runs a statement over a batch, and returns errMismatch unless it matches all rows.
func (s *Store) matchAll(ctx context.Context, x runner, stmt statements.Stmt, values statements.Values, rows []statements.Row) error {
	result, err := x.exec(ctx, stmt, values, rows)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && int(n) != len(rows) {
		err = errMismatch
	}
	return err
}

// endClaims stores changes that notify the workers of claimed tasks: their claims have ended.
func (s *Store) endClaims(ctx context.Context, x runner, found []statements.AllowedTask) error {
	for _, t := range found {
		if t.Worker == "" {
			continue
		}
		c := Change{Subject: TaskSubject + strconv.FormatInt(t.TaskID, 10), What: statements.ChangeCancel, Value: strconv.FormatInt(t.Fence, 10)}
		if err := s.putChange(ctx, x, c); err != nil {
			return err
		}
	}
	return nil
}

// workerVanished is the error of a lost attempt.
const workerVanished = "the lease ended: the worker vanished"

// WhyLost returns the error of an attempt that was lost in a step. The step is "" if none was running, or it is not known.
func WhyLost(step string) string { return workerVanished + InStep(step) }

// InStep names a step in the error of an attempt that was lost.
func InStep(step string) string {
	if step == "" {
		return ""
	}
	return fmt.Sprintf(" in step %q", step)
}

// recordLost records the attempts that dead workers have lost, for tasks whose claims end. Otherwise the next claims would
// do so.
func (s *Store) recordLost(ctx context.Context, x runner, ended []statements.AllowedTask) error {
	var lost []Key
	for _, t := range ended {
		if t.Worker != "" && t.Lease <= 0 {
			lost = append(lost, t.Key)
		}
	}
	if lost == nil {
		return nil
	}
	in, err := s.countLost(ctx, x, lost)
	if err != nil {
		return err
	}
	var e Settlement
	for _, t := range ended {
		if t.Worker != "" && t.Lease <= 0 {
			e.Records = append(e.Records, Record{Key: t.Key, Attempt: t.Attempts, Outcome: statements.OutcomeLost, Worker: t.Worker, Error: WhyLost(in[t.TaskID])})
		}
	}
	return attemptLog{s}.settle(ctx, x, []*Settlement{&e})
}

// doneOf returns the keys of done tasks, which begin anew. Other tasks continue after their last step.
func doneOf(found []statements.AllowedTask) (done []Key) {
	for _, t := range found {
		if t.State == statements.StateDone {
			done = append(done, t.Key)
		}
	}
	return done
}

// revive retries tasks or runs them now, and notifies workers that listen.
func (s *Store) revive(ctx context.Context, x runner, p ActParams, found []statements.AllowedTask, stmt statements.Stmt) error {
	list := make([]statements.Revival, len(found))
	var lost []statements.AllowedTask // tasks whose claims end
	for i, t := range found {
		list[i] = statements.Revival{Key: t.Key, Wait: p.Waits[t.TaskID].Microseconds()}
		if list[i].Wait > 0 {
			lost = append(lost, t)
		}
	}
	rows := statements.RevivalColumns.Rows(len(list), func(i int) *statements.Revival { return &list[i] })
	place := statements.Values{"in_place": 0}
	if p.InPlace {
		place["in_place"] = 1
	}
	if err := s.matchAll(ctx, x, stmt, place, rows); err != nil {
		return err
	}
	if err := errors.Join(s.dropSteps(ctx, x, doneOf(found)), s.recordLost(ctx, x, lost)); err != nil {
		return err
	}
	if p.Payload != "" {
		values := statements.Values{"id": found[0].TaskID, "payload": p.Payload}
		if _, err := x.exec(ctx, s.fixed("put payload", statements.PutPayload), values, nil); err != nil {
			return err
		}
	}
	if !s.notify {
		return nil
	}
	return s.notifyWithin(ctx, x, len(found), func(i int) string { return found[i].Queue })
}
