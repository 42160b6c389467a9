package falldue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
)

// Cancel cancels a task that is not finished. If its handler is running, on any worker, the
// handler's context ends with the cause [ErrCancelled] within two seconds, and the handler's
// return value does not count. If the task is completed at the same moment, either the
// cancellation or the completion wins. The error wraps [ErrNotFound] if the task does not exist, and
// [ErrWrongState] if it is finished.
func (q *Queue) Cancel(ctx context.Context, id int64) error {
	return q.act(ctx, store.ActParams{Action: store.ActCancel, IDs: []int64{id}, Wait: true}, "blocked, open or snoozed")
}

// DeleteOptions are the settings of [Queue.Delete].
type DeleteOptions struct {
	// Running deletes the task even if it runs. Its handler's context ends as with
	// [Queue.Cancel]. Defaults to false.
	Running bool
}

// Delete deletes a task in any state, with its recorded attempts and its progress. Pass options at most once. The error
// wraps [ErrRunning] if the task runs and DeleteOptions.Running is not set, and [ErrNotFound] if it does not exist. A
// deleted task cannot be retried. A cancelled task can.
func (q *Queue) Delete(ctx context.Context, id int64, opts ...DeleteOptions) error {
	o, err := oneOf(opts)
	if err != nil {
		return err
	}
	p := store.ActParams{Action: store.ActDelete, IDs: []int64{id}, Wait: true}
	if o.Running {
		p.Action = store.ActDeleteAny
	}
	err = q.act(ctx, p, "one that does not run")
	if errors.Is(err, ErrWrongState) {
		return fmt.Errorf("%w: %d", ErrRunning, id)
	}
	return err
}

// RetryOptions are the settings of [Queue.Retry].
type RetryOptions struct {
	// State is the state that the task must have: [StateDead], [StateCancelled] or [StateDone].
	// Defaults to dead or cancelled. To run a done task again, set StateDone.
	State State
	// Fence is the fencing token that the task must have: the Fence of the [TaskInfo] that you have read. The task
	// is then retried only if it has not run since, so a repeated call has no effect. Defaults to nil: any token.
	Fence *int64
	// InPlace makes the task the next one of its sequence ([InOrder]), before the tasks that were
	// enqueued after it. Metrics and [backoff.Policy.WithStartWithin] then count its wait from its
	// enqueue. Defaults to false: the end of the sequence.
	InPlace bool
	// Args replaces the task's arguments, encoded as JSON as [Kind.Enqueue] does. A [json.RawMessage] is stored without
	// changes. The arguments change only if the task is retried. The task's key and its unique key stay, even if
	// [Kind.KeyedBy] would make another key from Args: to change a key, delete the task and enqueue a new task. Defaults
	// to nil: the arguments stay.
	Args any
}

// finalStates are the states of finished tasks.
var finalStates = []State{StateDone, StateDead, StateCancelled}

// Retry makes a dead or cancelled task due immediately, with all its attempts left. It retries a done task only if
// the options ask for that. Pass options at most once. The recorded attempts stay, and a result is deleted. A dead or
// cancelled task keeps its steps (package steps), and a done task begins anew. The worker of this process looks for
// the task immediately, and so do workers that listen ([Notifications]). Other workers find it at their next poll.
//
// The error wraps [ErrNotFound] if the task does not exist, [ErrWrongState] if it has another state or another fencing
// token, and [ErrInvalid] for Args that cannot be encoded. It is an [ExistsError] if an unfinished task holds the
// task's unique key.
func (q *Queue) Retry(ctx context.Context, id int64, opts ...RetryOptions) error {
	o, err := oneOf(opts)
	if err != nil {
		return err
	}
	if o.State != "" && !slices.Contains(finalStates, o.State) {
		return invalid("State %.100q of RetryOptions: must be one of %q", o.State, finalStates)
	}
	p := store.ActParams{Action: store.ActRetry, IDs: []int64{id}, State: string(o.State), Fence: o.Fence, InPlace: o.InPlace, Wait: true}
	if o.Args != nil {
		if p.Payload, err = q.newPayload(ctx, id, o.Args); err != nil {
			return err
		}
	}
	expected := cmp.Or(string(o.State), "dead or cancelled")
	if o.Fence != nil {
		expected += fmt.Sprintf(" with fence %d", *o.Fence)
	}
	return q.act(ctx, p, expected)
}

// newPayload returns the new payload of a task, as it is stored.
func (q *Queue) newPayload(ctx context.Context, id int64, args any) (string, error) {
	payload, err := toStore("payload", args, q.cfg.MaxPayload)
	if err != nil {
		return "", err
	}
	t, err := q.store.Task(ctx, id) // its kind does not change
	if err != nil {
		return "", err
	}
	return q.encode(payloadOf(t.Kind), payload)
}

// act does an action to one task. expected describes, for the error, a task that allows the action.
func (q *Queue) act(ctx context.Context, p store.ActParams, expected string) error {
	acted, err := q.store.Act(ctx, p)
	if err != nil {
		return err
	}
	if exists := acted.Exists[p.IDs[0]]; exists != nil {
		return existsError(exists)
	}
	if len(acted.Done) == 0 {
		return q.notActed(ctx, p, expected)
	}
	q.acted(ctx, p.Action, acted)
	return nil
}

// notActed returns the error of an action on a task that does not exist, or does not allow the action.
func (q *Queue) notActed(ctx context.Context, p store.ActParams, expected string) error {
	id := p.IDs[0]
	t, err := q.store.Task(ctx, id)
	if err != nil {
		return err
	}
	found := t.State
	if p.Fence != nil {
		found += fmt.Sprintf(" with fence %d", t.Fence)
	}
	return fmt.Errorf("%w: task %d is %s; expected %s", ErrWrongState, id, found, expected)
}

// acted notifies workers of an action, and unblocks or cancels tasks that run after the changed
// ones.
func (q *Queue) acted(ctx context.Context, a store.Action, acted store.Acted) {
	if acted.Members {
		q.judgeMembers(ctx, acted.Done)
	}
	if a == store.ActRetry || a == store.ActRunNow {
		q.Wake()
	} else {
		q.readChanges()
	}
}

// judgeMembers unblocks tasks after their members, which are their dependencies, have ended. If it fails, a worker does
// so at its next check of all dependencies.
func (q *Queue) judgeMembers(ctx context.Context, members []int64) {
	upkeep.NewFlowKeeper(q.store, func(context.Context, string) { q.Wake() }, q.cfg.Logger).JudgeFor(ctx, members)
}
