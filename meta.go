package falldue

import "time"

// TaskMeta describes a task to its handler.
type TaskMeta struct {
	// ID is the id that Enqueue returned.
	ID int64
	// Kind and Queue are the names of the task's kind and queue.
	Kind, Queue string
	// Attempt is the number of this attempt, from 1. A run that ended with a snooze
	// is not counted.
	Attempt int
	// MaxAttempts is the number of attempts the task has in all; 0 is no limit.
	MaxAttempts int
	// Fence counts the claims of the task, including those that ended with a snooze
	// or were lost. Each run of a task has a higher fence than all runs before it.
	// It can serve as a fencing token for effects outside the database.
	Fence int64
	// Priority is the priority of the task. Lower numbers run first.
	Priority int
	// CreatedAt is when the task was enqueued, by the database's clock.
	CreatedAt time.Time
}
