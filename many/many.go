// Package many runs a handler for many tasks of a kind together, for APIs that take a list and for statements that
// insert many rows. [Handle] gathers the tasks and calls your function with each batch. Each task still has its own
// run, with its own lease, timeout, limits, middleware, events and outcome.
package many

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/worker"
)

// Config limits the batches. The zero value is ready for use.
type Config[A any] struct {
	// Most is the maximum number of tasks in a batch: 2 to 1,000, and no more than the Concurrency of the kind's queue.
	// Each task occupies a handler of the queue while it waits and runs. If Concurrency is 2 or more times Most, one batch
	// can gather while another runs. Defaults to 100, or to Concurrency if that is less.
	Most int
	// Wait is how long the first task of a batch waits for more tasks, up to an hour. A batch of Most tasks runs
	// immediately. The timeout of a task includes its wait. Defaults to 100 milliseconds.
	Wait time.Duration
	// GroupBy returns the same text for tasks that can be in one batch, such as the customer of a task. Defaults to nil:
	// any tasks of the kind can be in one batch.
	GroupBy func(task falldue.Task[A]) string
}

// Batch contains the tasks for one call of the function, and their outcomes.
type Batch[A any] struct {
	// Tasks are the tasks of the batch, in the order in which they began to wait. Their methods work as in any handler.
	// Call DoneTx of each task to complete all tasks in one transaction, together with the writes of the function. The
	// function can sort Tasks before it sets elements of Errs.
	Tasks []falldue.Task[A]
	// Errs has an element for each of Tasks, nil at first. Store a task's error there. It counts as the error that a
	// handler returns for the task: the task is retried, or has the outcome of [falldue.Discard], [falldue.Snooze],
	// [falldue.Again] or [falldue.RetryAfter].
	Errs []error

	contexts map[claim]context.Context
}

// claim identifies a task of a batch, even if the function has sorted Tasks.
type claim struct{ id, fence int64 }

func claimOf[A any](t falldue.Task[A]) claim { return claim{t.ID, t.Fence} }

// errors returns the elements of Errs by their tasks.
func (b *Batch[A]) errors() map[claim]error {
	errs := map[claim]error{}
	for i, err := range b.Errs[:min(len(b.Errs), len(b.Tasks))] {
		errs[claimOf(b.Tasks[i])] = err
	}
	return errs
}

// NewBatch returns a batch for testing a function without a database. Make its tasks with package tasktest.
func NewBatch[A any](tasks ...falldue.Task[A]) *Batch[A] {
	return &Batch[A]{Tasks: tasks, Errs: make([]error, len(tasks))}
}

// Context returns the context of Tasks[i]. It ends when the task is cancelled, has lost its lease or has timed out, even if
// the rest of the batch continues.
func (b *Batch[A]) Context(i int) context.Context {
	if ctx, ok := b.contexts[claimOf(b.Tasks[i])]; ok {
		return ctx
	}
	return context.Background()
}

// Handle registers fn as the handler of a kind's tasks, as [falldue.Handle] does. fn gets a batch of tasks. Its result
// applies to each task without an error in Batch.Errs: nil means that these tasks are done, and an error is the error
// of each of these tasks. Middleware, hooks and the history treat each task separately.
//
// If fn panics, each task whose element of Batch.Errs is nil fails with a [falldue.PanicError], and the others fail with
// their own errors. The context of fn has the values of the first task's context. It ends when the contexts of all tasks
// have ended.
//
// A task that still waits for its batch when the worker stops is released, and its attempt does not count. A task whose
// payload cannot be decoded fails without being in a batch.
//
// [falldue.Queue.Run] returns an error that wraps [falldue.ErrInvalid] if cfg is invalid.
func Handle[A any](q *falldue.Queue, kind falldue.Kind[A], cfg Config[A], fn func(ctx context.Context, b *Batch[A]) error, list ...falldue.Middleware) {
	inside := hooks.Of[queue](q)
	cfg, err := cfg.complete(kind.Name(), kind.Config().Queue, inside.WorkerConfig().Queues[kind.Config().Queue].Concurrency)
	if err != nil {
		inside.Refuse(err)
	}
	if fn == nil {
		falldue.Handle(q, kind, nil, list...)
		return
	}
	g := &gatherer[A]{Config: cfg, fn: fn, open: map[string]*batch[A]{}}
	falldue.Handle(q, kind, g.handle, list...)
}

// queue is what this package uses of a *falldue.Queue.
type queue interface {
	WorkerConfig() worker.Config
	// Refuse makes Run return an error.
	Refuse(err error)
}

const (
	defaultMost, maxMost = 100, 1000
	defaultWait, maxWait = 100 * time.Millisecond, time.Hour
)

// complete returns the configuration with its defaults. handlers is the number of the queue's handlers, or 0 if the worker
// does not run tasks of the queue.
func (c Config[A]) complete(kind, queue string, handlers int) (Config[A], error) {
	if handlers > 0 {
		c.Most = cmp.Or(c.Most, min(defaultMost, max(handlers, 2)))
	}
	c.Most, c.Wait = cmp.Or(c.Most, defaultMost), cmp.Or(c.Wait, defaultWait)
	switch {
	case c.Most < 2 || c.Most > maxMost:
		return c, fmt.Errorf("%w: Most %d of kind %q: must be 2 to 1,000", falldue.ErrInvalid, c.Most, kind)
	case c.Wait < 0 || c.Wait > maxWait:
		return c, fmt.Errorf("%w: Wait %v of kind %q: must be at most an hour", falldue.ErrInvalid, c.Wait, kind)
	case handlers > 0 && c.Most > handlers:
		return c, fmt.Errorf("%w: Most %d of kind %q: must be no more than the Concurrency of queue %q, which is %d", falldue.ErrInvalid, c.Most, kind, queue, handlers)
	}
	return c, nil
}
