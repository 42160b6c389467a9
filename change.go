package falldue

import (
	"context"
	"fmt"

	"github.com/falldue/falldue/internal/store"
)

// Cancel cancels a task that is not finished. If its handler is running, on any worker, the
// handler's context ends with the cause [ErrCancelled] within two seconds. What the
// handler returns does not count then. If it settles the task at the same moment, one
// of them wins. The error wraps [ErrNotFound] if the task does not exist or is finished.
func (q *Queue) Cancel(ctx context.Context, id int64) error {
	return q.act(ctx, "cancel", store.ActParams{Action: store.ActCancel, IDs: []int64{id}, Wait: true})
}

// DeleteOptions are the settings of [Queue.Delete].
type DeleteOptions struct {
	// Running also deletes a task that runs. Its handler's context ends as by
	// [Queue.Cancel].
	Running bool
}

// Delete deletes a task in any state, with its recorded attempts and its progress. The error
// wraps [ErrRunning] if the task runs and the options do not allow that, and [ErrNotFound] if
// it does not exist. A deleted task cannot be retried; one that was
// cancelled can.
func (q *Queue) Delete(ctx context.Context, id int64, o DeleteOptions) error {
	p := store.ActParams{Action: store.ActDelete, IDs: []int64{id}, Wait: true}
	if o.Running {
		p.Action = store.ActDeleteAny
	}
	err := q.act(ctx, "delete", p)
	if err == nil || o.Running {
		return err
	}
	if t, other := q.store.Task(ctx, id); other == nil && t.ClaimedBy != "" {
		return fmt.Errorf("%w: %d", ErrRunning, id)
	}
	return err
}

// Retry makes a dead, cancelled or done task due at once, with all its attempts left. The
// recorded attempts stay, and a result does not. The worker of this process looks for the task at
// once, and so do workers that listen ([Config].Listen), others at their next
// poll. The error wraps [ErrNotFound] if the
// task does not exist or is in another state, and is an [ExistsError] if an unfinished
// task holds its unique key.
func (q *Queue) Retry(ctx context.Context, id int64) error {
	return q.act(ctx, "retry", store.ActParams{Action: store.ActRetry, IDs: []int64{id}, Wait: true})
}

// RetryEdited is like [Queue.Retry] and replaces the task's arguments by args, encoded as JSON
// as those of [Kind.Enqueue] are. A [json.RawMessage] is taken as it is. Nothing is changed
// unless both are. The task's key stays as it is, also if [Kind.KeyedBy] would make another one
// of args, and so does a unique key. To run it with another key, delete it and enqueue one. The
// error wraps [ErrInvalid] for args that
// cannot be encoded.
func (q *Queue) RetryEdited(ctx context.Context, id int64, args any) error {
	payload, err := toStore("payload", args, q.cfg.MaxPayload)
	if err != nil {
		return err
	}
	t, err := q.store.Task(ctx, id) // whose kind stays
	if err != nil {
		return err
	}
	p := store.ActParams{Action: store.ActRetry, IDs: []int64{id}, Wait: true}
	if p.Payload, err = encode(q.cfg.Codec, payloadOf(t.Kind), payload); err != nil {
		return err
	}
	return q.act(ctx, "retry", p)
}

// act does an action to one task. Its name is for the error.
func (q *Queue) act(ctx context.Context, name string, p store.ActParams) error {
	acted, err := q.store.Act(ctx, p)
	if err != nil {
		return err
	}
	if exists := acted.Exists[p.IDs[0]]; exists != nil {
		return existsError(exists)
	}
	if len(acted.Done) == 0 {
		return q.notActed(ctx, name, p.IDs[0])
	}
	q.acted(ctx, p.Action, acted)
	return nil
}

// notActed returns the error of an action on a task that does not exist, or whose state does
// not allow it.
func (q *Queue) notActed(ctx context.Context, name string, id int64) error {
	t, err := q.store.Task(ctx, id)
	if err != nil {
		return fmt.Errorf("%w: %d", ErrNotFound, id) // as far as the action has seen
	}
	return fmt.Errorf("%w to %s: task %d is %s", ErrNotFound, name, id, t.State)
}

// acted tells workers of an action, and opens or cancels what runs after the tasks.
func (q *Queue) acted(ctx context.Context, a store.Action, acted store.Acted) {
	if acted.Members {
		q.judgeMembers(ctx, acted.Done)
	}
	if a == store.ActRetry {
		q.Wake()
	} else {
		q.readChanges()
	}
}
