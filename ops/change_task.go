package ops

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// TaskChange is a change of a task by [Ops.ChangeTask]. Fields that are not set change nothing.
type TaskChange struct {
	// Fence is the fencing token that the task must have: the Fence of the [falldue.TaskInfo] that you read before. It is
	// a pointer, since new tasks have the token 0. Defaults to nil: any token.
	Fence *int64
	// RunAt is when the task next runs, by the database's clock, in the years 1970 to 9000. A time in the past
	// means immediately. RunAt replaces the policy's delay of a task that has failed.
	RunAt time.Time
	// Queue is the name of the queue in which the task waits.
	Queue string
	// Priority orders the tasks of a queue, -32,768 to 32,767.
	Priority *int
	// Args replaces the task's arguments, encoded as JSON. An [encoding/json.RawMessage] is stored as it is. The task's
	// key and its unique key stay.
	Args any
	// Params replaces the task's arguments, its key and its unique key. Make it with [falldue.Kind.Params] of the task's
	// kind, which includes the key of [falldue.Kind.KeyedBy]. Other options in Params are ignored. Params and Args cannot
	// both be set. A task of a flow (package flow) takes no unique key.
	Params *falldue.EnqueueParams
}

// ChangeTask changes the due time, queue, priority or arguments of a waiting task. The task's attempts and policy stay.
// A running task is never changed. A task of a dead worker counts as waiting when its lease has expired. The change
// gives the task a new fencing token. In a sequence, a task keeps its place if only its arguments or its unique key change.
// Otherwise its due time decides its place.
//
// The error wraps [falldue.ErrNotFound] if the task does not exist, [falldue.ErrRunning] if it runs,
// [falldue.ErrWrongState] if it is finished or blocked or has another fencing token, and [falldue.ErrInvalid] for a
// value that is not allowed. It is a [falldue.ExistsError] if an unfinished task holds the new unique key.
func (o *Ops) ChangeTask(ctx context.Context, id int64, to TaskChange) error {
	for try := 0; ; try++ {
		t, err := o.store.Task(ctx, id)
		if err != nil {
			return err
		}
		if err := changeable(t, to.Fence); err != nil {
			return err
		}
		change, err := o.waitingChange(t, to)
		if err != nil {
			return err
		}
		changed, err := o.store.ChangeWaiting(ctx, change)
		if err != nil {
			return o.inside.ExistsError(err)
		}
		if changed {
			o.inside.Acted(ctx, store.ActRunNow, store.Acted{Done: []int64{id}})
			return nil
		}
		if try == changeTries {
			return fmt.Errorf("%w: task %d kept changing while it was read; try again", falldue.ErrWrongState, id)
		}
	}
}

// changeTries is how often a task is read again that has been changed since it was read.
const changeTries = 5

// changeable returns an error unless a task waits, with a fence if that is not nil.
func changeable(t store.Task, fence *int64) error {
	switch state := falldue.State(t.State); {
	case state != falldue.StateOpen && state != falldue.StateSnoozed:
		return fmt.Errorf("%w: task %d is %s; expected open or snoozed", falldue.ErrWrongState, t.ID, t.State)
	case t.ClaimedBy != "" && t.Updated > t.Now:
		return fmt.Errorf("%w: %d", falldue.ErrRunning, t.ID)
	case fence != nil && *fence != t.Fence:
		return fmt.Errorf("%w: task %d has fence %d; expected fence %d", falldue.ErrWrongState, t.ID, t.Fence, *fence)
	}
	return nil
}

// waitingChange returns the settings of a task after a change. An enqueue would check them likewise.
func (o *Ops) waitingChange(t store.Task, to TaskChange) (c store.WaitingChange, err error) {
	params := falldue.NewKind[any](t.Kind, falldue.KindConfig{Queue: t.Queue}).Params(to.Args)
	if to.Params != nil {
		if to.Args != nil {
			return c, invalid("Args and Params are set: set only one")
		}
		if params = *to.Params; params.Kind() != t.Kind {
			return c, invalid("Params of kind %.100q: must be of the task's kind %q", params.Kind(), t.Kind)
		}
	}
	opts := params.Options()
	opts.RunAt, opts.Delay, opts.Queue, opts.Priority = to.RunAt, 0, to.Queue, to.Priority
	if to.Queue == "" {
		opts.Queue = t.Queue
	}
	if to.Priority == nil {
		opts.Priority = &t.Priority
	}
	e, err := o.inside.StoredEntry(params)
	if err != nil {
		return c, err
	}
	if e.Unique != "" && (store.HasMark(t.Metadata, store.MemberMark) || store.HasMark(t.Metadata, store.WaiterMark)) {
		return c, invalid("Params has Unique: must not be set for task %d, since the task belongs to a flow", t.ID)
	}
	c = store.WaitingChange{
		Key: store.Key{TaskID: t.ID, Fence: t.Fence}, Queue: e.Queue, Priority: e.Priority, RunAt: e.At,
		TaskKey: t.Key,
	}
	if to.Params != nil {
		c.TaskKey, c.Unique = e.Key, sql.Null[string]{V: e.Unique, Valid: true}
	}
	c.InPlace = !c.RunAt.Valid && c.Queue == t.Queue && c.Priority == t.Priority && c.TaskKey == t.Key
	if to.Params != nil || to.Args != nil {
		c.Payload = sql.Null[string]{V: e.Payload, Valid: true}
	}
	return c, nil
}
