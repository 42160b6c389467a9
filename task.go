package falldue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/storable"
)

// RunInfo describes a run of a task: to its handler in a [Task], to middleware in a [Run], and in
// an [Event].
type RunInfo struct {
	// ID is the ID of the task, as in its [Receipt].
	ID int64
	// Kind and Queue are the names of the task's kind and queue.
	Kind, Queue string
	// Attempt is the number of this attempt, from 1. Runs that ended with a snooze, or because their worker stopped, are
	// not counted. After [Again], the number is 1 again.
	Attempt int
	// MaxAttempts is the number of attempts that the task has in total, or 0 for no limit.
	MaxAttempts int
	// Fence increases with each claim of the task, including claims that ended with a snooze or were lost. Each run of
	// a task has a higher fence than all runs before it. It can serve as a fencing token for effects outside the
	// database.
	Fence int64
	// Priority is the priority of the task. Lower numbers run first.
	Priority int
	// Key is the task key in its stored form ([EnqueueOptions].Key), or "" if there is none.
	Key string
	// Metadata is the task's [EnqueueOptions].Metadata, including additions by middleware. It is
	// nil for a task without metadata. Do not change it.
	Metadata map[string]string
	// CreatedAt is when the task was enqueued, DueAt when it fell due for this run, both by
	// the database's clock.
	CreatedAt, DueAt time.Time
	// ReadyAt is the last time after DueAt at which a limit held the task back, as far as this worker knows, or else
	// DueAt. ReadyAt.Sub(DueAt) is the wait for limits and, with [InOrder], for earlier tasks of the same key.
	ReadyAt time.Time
	// StartedAt is when this run began, by an estimate of the database's clock. StartedAt.Sub(ReadyAt) is the wait for a
	// worker, including pauses. StartedAt is zero for a run that did not begin.
	StartedAt time.Time
	// Worker is the ID of the worker.
	Worker string
}

// Task is a task that is passed to its handler.
type Task[A any] struct {
	RunInfo
	// Args are the arguments with which the task was enqueued.
	Args A

	run hooks.TaskCalls // a *run.Run, or a record of package tasktest
}

// errNoRun is the error of methods of a Task that has been made as a literal.
var errNoRun = invalid("the Task belongs to no worker: for a test, make it with tasktest.NewTask or NewTaskOf")

func (t *Task[A]) calls() *hooks.TaskCalls { return &t.run }

// DoneTx marks the task done inside tx, a transaction ([Tx]) on the queue's database. The
// handler's writes in tx and the end of the task commit together or not at all, so these writes
// happen exactly once.
//
// After DoneTx, commit tx and return nil. If the commit fails, return its error, and the task
// is retried. If DoneTx fails, roll tx back. The error is [ErrLeaseLost] if the task no longer
// belongs to this worker.
//
// After DoneTx, only the commit of tx ends the task. If the handler returns nil and tx was not
// committed, the attempt fails with [ErrNotCommitted]. If the handler returns an error although
// tx was committed, the task is done, and the worker logs the error.
func (t Task[A]) DoneTx(ctx context.Context, tx Tx) error {
	if t.run == nil {
		return errNoRun
	}
	if err := checkTx(tx); err != nil {
		return err
	}
	return t.run.DoneTx(ctx, tx)
}

// SetResult sets the result of the task, encoded as JSON of up to Config.MaxPayload bytes. The
// result is stored when the task is done and kept as long as the task: for
// KindConfig.DoneRetention, or else Config.DoneRetention. The last call before DoneTx, or
// before the handler returns nil, wins. [ResultOf] reads the result.
//
// The error wraps [ErrInvalid] if v cannot be encoded or is too large, or if done tasks of
// the kind are deleted immediately, since the result would be deleted, too.
func (t Task[A]) SetResult(v any) error {
	if t.run == nil {
		return errNoRun
	}
	if !t.run.KeepsDone() {
		return invalid("result of kind %q: done tasks of the kind are deleted immediately; set KindConfig.DoneRetention or Config.DoneRetention", t.Kind)
	}
	result, err := toStore("result", v, t.run.MaxPayload())
	if err != nil {
		return err
	}
	return t.run.SetResult(result)
}

// Progress reports how far the handler has come: a fraction from 0 to 1, and a message for people, which may be "".
// [Queue.Progress] reads it, even while the task runs. The worker writes the last report of each handler once a second,
// and once more when the handler has returned. Reports of a run that has lost its lease are not written.
//
// Progress does not wait for the database, and returns no error: a worker that cannot write it logs
// a warning. A fraction below 0 counts as 0, and above 1 as 1. A message is cut after 16 KiB.
func (t Task[A]) Progress(fraction float64, message string) {
	if t.run != nil {
		t.run.Progress(fraction, message)
	}
}

// Handle registers fn as the handler of a kind's tasks. Call it before [Queue.Run]: a running
// worker logs an error and does not handle the kind. Run returns an error that wraps
// [ErrInvalid] if a kind is invalid or is registered twice, or if fn or one of the middleware
// is nil.
//
// fn returns nil when the task is done, and an error when the task must be retried under its policy. The errors of
// [Discard], [Snooze] and [RetryAfter] ask for another outcome. fn runs at least once for each task, and again if its
// worker dies before the outcome is recorded. See [Task.DoneTx] for writes that must happen exactly once.
//
// If fn panics, the attempt fails with a [PanicError]. If the payload cannot be decoded as an
// A, the attempt fails without calling fn.
//
// The middleware in list wraps this handler only. The first element is the outermost. All of
// list runs inside the middleware of [Queue.Use].
func Handle[A any](q *Queue, k Kind[A], fn func(ctx context.Context, t Task[A]) error, list ...Middleware) {
	kind := k.made()
	if fn == nil {
		kind.err = cmp.Or(kind.err, invalid("handler of kind %.100q is nil", kind.name))
	}
	read, codec := storable.Decoder[A](), q.cfg.Codec
	q.register(kind, func(ctx context.Context, r *run.Run) error {
		payload, err := decode(codec, payloadOf(r.Claim.From.Kind), r.Claim.Payload)
		if err != nil {
			return fmt.Errorf("%w: %w", outcome.ErrPayload, err)
		}
		args, err := read(payload)
		if err != nil {
			return fmt.Errorf("%w as %T: %w", outcome.ErrPayload, args, err)
		}
		return fn(ctx, Task[A]{RunInfo: RunInfo(r.Info()), Args: args, run: r})
	}, list)
}
