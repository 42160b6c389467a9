package falldue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Task is a task as its handler gets it.
type Task[A any] struct {
	TaskMeta
	// Args are the arguments it was enqueued with.
	Args A

	run *run
}

// TaskMeta is what a handler is told about its task besides the arguments.
type TaskMeta struct {
	// ID is what Enqueue returned.
	ID int64
	// Kind and Queue are where it belongs.
	Kind, Queue string
	// Attempt is 1 when the task runs for the first time. Snoozes do not count.
	Attempt int
	// MaxAttempts is how often it may run; 0 is without limit.
	MaxAttempts int
	// Fence counts the task's claims, snoozes and lost ones included. Each run
	// of a task has its own, higher than every one before, which makes it a
	// fencing token for effects outside the database.
	Fence int64
	// Priority is its place in the queue, lower first.
	Priority int
	// CreatedAt is when it was enqueued, by the database's clock.
	CreatedAt time.Time
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
