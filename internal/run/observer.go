package run

import (
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
)

// Observer is told of runs, and of statements that settle them. The errors come from the database.
type Observer interface {
	// Started is told of a run whose handler begins.
	Started(r *Run)
	// Ended is told of a run that has ended. next is how long its task then waits, or 0.
	Ended(r *Run, end outcome.Outcome, next time.Duration)
	// Settled is told of a statement that settles tasks: how many they are, and which are left.
	Settled(tasks int, left store.Unsettled, start time.Time, err error)
}

// waker wakes the pollers.
type waker interface {
	// Hint announces a task in a lane of a queue, which falls due after wait. It reports
	// whether this worker runs such tasks.
	Hint(queue string, at store.Lane, wait time.Duration) bool
	// Freed announces the limits of permits that were freed.
	Freed(limits []string)
	// WakeWaiting wakes the pollers that wait for room for more tasks.
	WakeWaiting()
}

// flows is told of ended tasks: members are dependencies of other tasks, and gone are tasks with
// dependencies that were deleted when they ended.
type flows interface {
	Ended(members, gone []int64)
}
