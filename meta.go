package falldue

import "time"

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
