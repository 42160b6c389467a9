package falldue

import (
	"context"
	"encoding/json"
	"fmt"
)

// Task is a task as its handler gets it.
type Task[A any] struct {
	TaskMeta
	// Args are the arguments it was enqueued with.
	Args A

	run *run
}

// DoneTx ends the task inside tx, a *sqlx.Tx or *sql.Tx on the queue's
// database: what the handler writes there and the end of the task commit
// together or not at all, so that these writes happen exactly once. Commit, and
// return nil; if the commit fails, return its error, and the task is retried.
//
// The error is [ErrLeaseLost] when the task is no longer this worker's; then
// roll back.
func (t Task[A]) DoneTx(ctx context.Context, tx Tx) error {
	return t.run.doneTx(ctx, tx)
}

// SetResult gives the task a result, any value that JSON can hold, which stays
// with it for as long as Config.DoneRetention says. The last one set before DoneTx counts,
// or before the handler returns nil.
func (t Task[A]) SetResult(v any) error {
	result, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: result: %w", ErrInvalid, err)
	}
	if err := validPayload(result, t.run.maxPayload); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	t.run.setResult(string(result))
	return nil
}

// Handle makes fn the handler of a kind's tasks in this process; call it before
// Run. fn returns nil when the task is done, an error when it is to be retried
// under its policy, or what [Discard], [Snooze] or [RetryAfter] return. It runs
// at least once for each task, and again when a worker died half way: where
// that matters, see [Task.DoneTx]. A kind that is invalid, or handled twice,
// makes Run return an error.
//
// A panic of fn is a failed attempt ([PanicError]), and so is a payload that is
// not an A, for which fn is not called.
func Handle[A any](q *Queue, k Kind[A], fn func(ctx context.Context, t Task[A]) error) {
	q.register(k.kind, func(ctx context.Context, r *run) error {
		var args A
		if err := json.Unmarshal(r.claim.Payload, &args); err != nil {
			return fmt.Errorf("decode the payload as %T: %w", args, err)
		}
		return fn(ctx, Task[A]{TaskMeta: r.meta(), Args: args, run: r})
	})
}
