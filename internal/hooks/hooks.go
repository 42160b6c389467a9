// Package hooks lets packages tasktest, periodic and flow into the root package, which sets the
// variables. Nothing else uses them.
package hooks

import (
	"context"
	"log/slog"
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

// Ticker enqueues the periodic tasks that are due, and returns how long it is until the
// next one is, or a negative duration.
type Ticker func(ctx context.Context) (next time.Duration, err error)

// Queue is what these packages do with a queue beyond its API.
type Queue interface {
	// RunOne claims the task that is due first, runs its handler in this goroutine, and
	// settles it. If none is due that the queue would run, it returns nil, and how long it
	// is until the next one falls due or a limit admits one, or a negative duration.
	RunOne(ctx context.Context) (ran *Ran, next time.Duration, err error)
	// Handles returns the queues in which RunOne looks, and the kinds that it runs.
	Handles() (queues, kinds []string)
	// CleanAndJudge deletes the finished tasks whose retention is over, and opens or cancels those
	// that run after others if it is time, as a worker does every now and then.
	CleanAndJudge(ctx context.Context) error
	// Store is the queue's.
	Store() *store.Store
	// Logger is the queue's.
	Logger() *slog.Logger
	// Entry returns the task that falldue.EnqueueParams describe, and a hash of its kind
	// and arguments, which does not depend on what the codec makes of them.
	Entry(params any) (e store.Entry, hash string, err error)
	// Through calls put with the tasks that middleware around enqueues makes of entries, or
	// with entries if there is none. It returns the error of put, or of middleware.
	Through(ctx context.Context, entries []store.Entry, put func(context.Context, []store.Entry) (ids []int64, err error)) error
	// Middleware reports whether there is middleware around enqueues.
	Middleware() bool
	// Enqueued wakes the workers of the queue for tasks that have been stored.
	Enqueued(entries []store.Entry)
	// EnqueueFlow stores falldue.EnqueueParams of which some run after others, in tx, a
	// falldue.Tx, unless that is nil.
	EnqueueFlow(ctx context.Context, tx any, params []any, flow store.Flow) ([]int64, error)
	// Said returns who changes something, and why, as they are stored, or says why they cannot be.
	Said(who, why string) (string, string, error)
	// Info is what a worker of the queue would say of itself.
	Info() store.WorkerInfo
	// TaskInfos returns rows as []falldue.TaskInfo, decoded by the queue's codec.
	TaskInfos(rows []store.Task) any
	// Change stores a change of a falldue.Subject, which ends at a time or, if that is zero, never,
	// and makes the worker of this process read it.
	Change(ctx context.Context, subject any, until time.Time, c store.Change) error
	// Acted tells workers of an action, and opens or cancels what runs after the tasks.
	Acted(ctx context.Context, a store.Action, acted store.Acted)
	// AddTicker makes a ticker one of the queue's, which Tickers returns.
	AddTicker(t Ticker)
	Tickers() []Ticker
}

var (
	// QueueOf returns the Queue of a *falldue.Queue.
	QueueOf func(q any) Queue
	// SetCalls sets what the methods of a *falldue.Task call.
	SetCalls func(task, calls any)
	// Origin says which process this is: its host, and the release of the program.
	Origin func() string
	// ProgressOf returns what a handler reports as the table has it, but for its task.
	ProgressOf func(fraction float64, message string) store.Progress
	// Asked returns the outcome that a handler asks for with an error, and how long its task
	// waits.
	Asked func(err error) (outcome string, wait time.Duration)
)
