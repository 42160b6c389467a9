// Package hooks lets package tasktest into the root package, which sets the variables.
// Nothing else uses them.
package hooks

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Ran is a task that was run.
type Ran struct {
	ID          int64
	Kind, Queue string
	Attempt     int
	State       string // the state to which it went
	Err         error  // what the handler returned
}

// Queue is what tests do with a queue beyond its API.
type Queue interface {
	// RunOne claims the task that is due first, runs its handler in this goroutine, and
	// settles it. If none is due that the queue would run, it returns nil, and how long it
	// is until the next one falls due or a limit admits one, or a negative duration.
	RunOne(ctx context.Context) (ran *Ran, next time.Duration, err error)
	// Store is the queue's.
	Store() *store.Store
}

// Verdict is what a handler asks for by the error that it returns.
type Verdict struct {
	Asked string // "", "discard", "snooze" or "retry after"
	Wait  time.Duration
}

var (
	// QueueOf returns the Queue of a *falldue.Queue.
	QueueOf func(q any) Queue
	// SetCalls sets what the methods of a *falldue.Task call.
	SetCalls func(task, calls any)
	// VerdictOf reads an error that a handler returned.
	VerdictOf func(err error) Verdict
)
