package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/falldue/falldue/internal/statements"
)

// WaitingChange has the settings of a task that waits, after a change.
type WaitingChange struct {
	Key      // the task, and the fence that it must have
	Queue    string
	Priority int
	TaskKey  string
	Unique   sql.Null[string] // its unique key or "", or null if it stays
	Payload  sql.Null[string] // null if it stays
	RunAt    sql.Null[int64]  // null if it stays; microseconds since 1970
	InPlace  bool             // whether the task keeps its place in a sequence
}

// ChangeWaiting changes a task that waits. It reports false if the task has been claimed or changed since it had
// the fence. The error is an [ExistsError] if another unfinished task holds the unique key.
func (s *Store) ChangeWaiting(ctx context.Context, c WaitingChange) (changed bool, err error) {
	values := statements.Values{
		"id": c.TaskID, "fence": c.Fence, "queue": c.Queue, "priority": c.Priority, "key": c.TaskKey, "unique": nil, "payload": nil, "at": nil,
	}
	if c.Payload.Valid {
		values["payload"] = c.Payload.V
	}
	if c.RunAt.Valid {
		values["at"] = c.RunAt.V
	}
	_, err = inTx(ctx, s, func(x runner) (struct{}, error) {
		found, err := s.allowed(ctx, x, ActParams{Action: ActRunNow, IDs: []int64{c.TaskID}}, statements.LockedInTurn)
		if err == nil && len(found) == 0 {
			err = errMismatch
		}
		if err != nil {
			return struct{}{}, err
		}
		was, now := found[0].Unique, found[0].Unique
		if c.Unique.Valid {
			now = c.Unique.V
		}
		if now != "" {
			values["unique"] = now
		}
		result, err := x.exec(ctx, s.fixed("change waiting", statements.ChangeWaiting), values, nil)
		if err == nil {
			err = one(result)
		}
		if err == nil {
			err = s.recordLost(ctx, x, found)
		}
		if err == nil && c.InPlace {
			err = s.carryPermits(ctx, x, found[0])
		}
		if err == nil && now != was {
			err = s.moveKey(ctx, x, c.TaskID, was, now)
		}
		if err != nil || !s.notify {
			return struct{}{}, err
		}
		return struct{}{}, s.notifyWithin(ctx, x, 1, func(int) string { return c.Queue })
	})
	if errors.Is(err, errMismatch) {
		return false, nil
	}
	return err == nil, err
}

// one returns errMismatch unless a statement has matched a row.
func one(result sql.Result) error {
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = errMismatch
	}
	return err
}

// moveKey takes the new unique key of a task, and releases the one before.
func (s *Store) moveKey(ctx context.Context, x runner, id int64, was, now string) error {
	exists, err := s.takeBack(ctx, x, []statements.AllowedTask{{Key: Key{TaskID: id}, Unique: now}})
	if err == nil && exists[id] != nil {
		err = exists[id]
	}
	if err != nil {
		return err
	}
	return s.releaseKeys(ctx, x, []statements.AllowedTask{{Key: Key{TaskID: id}, Unique: was}})
}
