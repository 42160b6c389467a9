package falldue

import (
	"time"

	"github.com/falldue/falldue/dialect"
)

// Event is a run of a task that has begun or ended. One that has begun has the Outcome
// [OutcomeNone]. The end is an event when it is settled: what it says is in the database.
type Event struct {
	RunInfo
	// Outcome is how the run ended.
	Outcome Outcome
	// Err is the error that the handler returned, or that says why the task is dead without
	// a run, or nil. A handler that panicked has a [PanicError] in it.
	Err error
	// Took is how long the handler ran, with its middleware.
	Took time.Duration
	// Next is how long after the end the task falls due again, if it does, unless its policy
	// changes.
	Next time.Duration
	// Worker is the id of the worker.
	Worker string
}

// Hooks are functions that a worker calls with what it does and how long that took, for
// metrics. Those that are nil are not called, and cost nothing. They are called by many
// goroutines at once, which wait for them: they should return within microseconds. A panic
// of a hook is logged.
type Hooks struct {
	// Event is called when a run begins and when its end has been settled. Unlike a
	// [Subscription] it misses none. A task that is due again at once may begin before the
	// event of its last end.
	Event func(Event)
	// Sweep is called after each search of a queue for lanes with tasks.
	Sweep func(SweepStats)
	// Claim is called after each claim.
	Claim func(ClaimStats)
	// Settle is called after each statement that settles tasks.
	Settle func(BatchStats)
	// Extend is called after each statement that extends leases.
	Extend func(BatchStats)
}

// SweepStats is what a search of a queue found.
type SweepStats struct {
	Queue string
	// Lanes is how many groups of tasks wait or run that differ in kind, key, priority, policy
	// or attempts.
	Lanes int
	// Took is how long the database took.
	Took time.Duration
	// Err is the error of a search that failed, and Class its class, by its code.
	Err   error
	Class dialect.Class
}

// ClaimStats is what a claim did.
type ClaimStats struct {
	Queue string
	// Wanted is how many tasks the worker had room for, Claimed how many it got. A claim
	// that got none was empty.
	Wanted, Claimed int
	// Recovered is how many of the claimed tasks another worker had claimed before and lost,
	// since it died for example. That worker may have no event of it.
	Recovered int
	// Took is how long the database took.
	Took time.Duration
	// Err is the error of a claim that failed, and Class its class, by its code.
	Err   error
	Class dialect.Class
}

// BatchStats is what a statement did that settles tasks, or that extends leases.
type BatchStats struct {
	// Tasks is the size of the batch. Of these, Lost no longer belonged to the worker, and
	// Locked had rows that another transaction had locked. Those are tried again.
	Tasks, Lost, Locked int
	Took                time.Duration
	// Err is the error of a statement that failed, and Class its class, by its code. All of
	// its tasks are tried again while their leases last.
	Err   error
	Class dialect.Class
}
