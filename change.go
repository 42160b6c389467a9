package falldue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/falldue/falldue/internal/store"
)

// Cancel cancels a task that is not finished. If its handler is running, on any worker, the
// handler's context ends with the cause [ErrCancelled] within two seconds. What the
// handler returns does not count then. If it settles the task at the same moment, one
// of them wins. The error wraps [ErrNotFound] if the task does not exist, and [ErrWrongState] if
// it is finished.
func (q *Queue) Cancel(ctx context.Context, id int64) error {
	return q.act(ctx, store.ActParams{Action: store.ActCancel, IDs: []int64{id}, Wait: true}, "blocked, open or snoozed")
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
	err := q.act(ctx, p, "one that does not run")
	if errors.Is(err, ErrWrongState) {
		return fmt.Errorf("%w: %d", ErrRunning, id)
	}
	return err
}

// RetryOptions are the settings of [Queue.Retry] and [Queue.RetryEdited].
type RetryOptions struct {
	// State is the state in which the task must be: [StateDead], [StateCancelled] or [StateDone]. By default
	// it may be dead or cancelled: a done task runs again only if you ask for that.
	State State
	// Fence, unless it is 0, is the fence that the task must have: that of the [TaskInfo] by
	// which you have decided to retry it. It has not run since then, however often you ask.
	Fence int64
}

// finalStates are the states of finished tasks.
var finalStates = []State{StateDone, StateDead, StateCancelled}

// params returns the retry of a task, and what the options expect of it.
func (o RetryOptions) params(id int64) (p store.ActParams, expected string, err error) {
	if o.State != "" && !slices.Contains(finalStates, o.State) {
		return p, "", invalid("State %.100q of RetryOptions; allowed are %q", o.State, finalStates)
	}
	expected = cmp.Or(string(o.State), "dead or cancelled")
	if o.Fence != 0 {
		expected += fmt.Sprintf(" with fence %d", o.Fence)
	}
	return store.ActParams{Action: store.ActRetry, IDs: []int64{id}, State: string(o.State), Fence: o.Fence, Wait: true}, expected, nil
}

// Retry makes a dead or cancelled task due at once, with all its attempts left, and a done task if
// the options ask for that. Pass options once at most. The recorded attempts stay, and a result
// does not. The worker of this process looks for the task at
// once, and so do workers that listen ([Notifications]), others at their next
// poll. The error wraps [ErrNotFound] if the
// task does not exist, and [ErrWrongState] if it is in another state or has another fence. It is an
// [ExistsError] if an unfinished task holds its unique key.
func (q *Queue) Retry(ctx context.Context, id int64, opts ...RetryOptions) error {
	o, err := oneOf(opts)
	if err != nil {
		return err
	}
	p, expected, err := o.params(id)
	if err != nil {
		return err
	}
	return q.act(ctx, p, expected)
}

// RetryEdited is like [Queue.Retry] and replaces the task's arguments by args, encoded as JSON
// as those of [Kind.Enqueue] are. A [json.RawMessage] is taken as it is. Nothing is changed
// unless both are. The task's key stays as it is, also if [Kind.KeyedBy] would make another one
// of args, and so does a unique key. To run it with another key, delete it and enqueue one. The
// error wraps [ErrInvalid] for args that
// cannot be encoded.
func (q *Queue) RetryEdited(ctx context.Context, id int64, args any, opts ...RetryOptions) error {
	o, err := oneOf(opts)
	if err != nil {
		return err
	}
	p, expected, err := o.params(id)
	if err != nil {
		return err
	}
	payload, err := toStore("payload", args, q.cfg.MaxPayload)
	if err != nil {
		return err
	}
	t, err := q.store.Task(ctx, id) // whose kind stays
	if err != nil {
		return err
	}
	if p.Payload, err = encode(q.cfg.Codec, payloadOf(t.Kind), payload); err != nil {
		return err
	}
	return q.act(ctx, p, expected)
}

// act does an action to one task. The error says what is expected of the task.
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

// notActed returns the error of an action on a task that does not exist, or that is not as the
// action expects it.
func (q *Queue) notActed(ctx context.Context, p store.ActParams, expected string) error {
	id := p.IDs[0]
	t, err := q.store.Task(ctx, id)
	if err != nil {
		return fmt.Errorf("%w: %d", ErrNotFound, id) // as far as the action has seen
	}
	found := t.State
	if p.Fence != 0 {
		found += fmt.Sprintf(" with fence %d", t.Fence)
	}
	return fmt.Errorf("%w: task %d is %s; expected %s", ErrWrongState, id, found, expected)
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
