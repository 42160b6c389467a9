package run

import (
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
)

// Observer is told of runs, and of statements that settle them or extend their leases.
// Errors are those of the database.
type Observer interface {
	// Started is told of a run whose handler begins.
	Started(r *Run)
	// Ended is told of a run that has ended. next is in how long its task falls due again.
	Ended(r *Run, end outcome.Outcome, next time.Duration)
	// Settled is told what a statement that settles a number of tasks left.
	Settled(tasks int, left store.Unsettled, start time.Time, err error)
	// Extended is told the same of a statement that extends leases.
	Extended(tasks int, left store.Unsettled, start time.Time, err error)
}

// waker wakes those who claim tasks.
type waker interface {
	// Hint tells of a task in a lane of a queue that falls due after wait. It reports whether
	// this worker runs such tasks.
	Hint(queue string, at store.Lane, wait time.Duration) bool
	// Freed tells of limits of which permits were freed.
	Freed(limits []string)
	// WakeWaiting wakes those who wait for room for more tasks.
	WakeWaiting()
}

// flows is told of tasks that have ended: of members, on which others depend, and of waiters
// that were deleted when they ended.
type flows interface {
	Ended(members, gone []int64)
}
