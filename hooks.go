package falldue

import (
	"time"

	"github.com/falldue/falldue/dialect"
)

// Event is the start or the end of a task's run. A start has the Outcome [OutcomeNone]. The
// event of an end comes after the database has stored the outcome.
type Event struct {
	RunInfo
	// Outcome is how the run ended, or [OutcomeNone] at its start.
	Outcome Outcome
	// Err is the error that the handler returned, or the reason why the task is dead without a run, or nil. If the handler
	// panicked, Err wraps a [PanicError].
	Err error
	// Took is how long the handler ran, with its middleware.
	Took time.Duration
	// Next is how long after the run the task falls due again, or 0 if it does not. A changed policy changes that time.
	Next time.Duration
}

// Hooks are functions that a worker calls with its runs and statements and their durations, for
// metrics. A nil hook is not called, and costs nothing. Many goroutines call hooks concurrently
// and wait for them, so hooks should return within microseconds. A panic of a hook is logged.
type Hooks struct {
	// Event is called when a run begins and when its outcome has been recorded. Unlike a [Subscription], it misses no
	// event. If a task is due again immediately, its next run may begin before the event of the previous run's end.
	Event func(Event)
	// Sweep is called after each search of a queue for lanes: groups of tasks that wait or run
	// and have the same kind, key, priority, policy and number of attempts.
	Sweep func(StatementStats)
	// Claim is called after each claim. A claim with no Tasks was empty.
	Claim func(StatementStats)
	// Settle is called after each statement that records outcomes, and Extend after each statement that extends leases.
	// The worker sends the tasks of a failed statement again as long as their leases last.
	Settle, Extend func(StatementStats)
	// Overtime is called once for each handler that has not returned 10 seconds after its timeout. Event.Took is that
	// timeout. The handler still counts toward Concurrency.
	Overtime func(Event)
	// Trouble is called after each failure of a background loop of the worker, or of package periodic. A worker logs
	// these failures, and returns none of them. The Role of the loop is one of announcer, changes, cleaner, flows,
	// history, listener, overdue, policies, progress and schedules. Trouble is not called for statements that have
	// another hook.
	Trouble func(StatementStats)
}

// StatementStats describes one statement of a worker.
//
//	            Sweep   Claim                    Settle, Extend, Trouble
//	Queue       yes     yes                      "": tasks of all queues; a Trouble may have one
//	Lanes       found   0                        0
//	Wanted      0       room for tasks           0
//	Tasks       0       claimed                  in the batch
//	Recovered   0       claimed after a loss     0
//	Lost        0       0                        no longer the worker's, and not settled by DoneTx
//	Locked      0       0                        rows that another transaction has locked
type StatementStats struct {
	Queue, Role          string
	Lanes, Wanted, Tasks int
	// Recovered is the number of claimed tasks that another worker had claimed and lost, for example because it died.
	// That worker might send no event for the loss.
	Recovered int
	// Lost is the number of tasks that no longer belong to the worker, without the tasks that DoneTx has settled. Locked
	// is the number of tasks whose rows another transaction has locked. The worker sends the statement again for the
	// locked tasks. The field Tasks counts lost and locked tasks, too.
	Lost, Locked int
	// Took is how long the database took.
	Took time.Duration
	// Err is the error of a statement that failed, and Class is the error's class, by its code.
	Err   error
	Class dialect.Class
}
