package falldue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// handlerFunc runs the handler of a claimed task.
type handlerFunc func(ctx context.Context, r *run.Run) error

// chain wraps fn in middleware. The first one is the outermost.
func chain(fn handlerFunc, list ...func(next handlerFunc) handlerFunc) handlerFunc {
	for i := len(list) - 1; i >= 0; i-- {
		fn = list[i](fn)
	}
	return fn
}

// recoverPanics turns a panic of a handler into an error, and the handler's error
// into an [outcome.Failure]. It reads the error here because that calls methods of the
// error, which may panic too.
func recoverPanics(next handlerFunc) handlerFunc {
	return func(ctx context.Context, r *run.Run) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = readError(&PanicError{Value: v, Stack: string(debug.Stack())})
			}
		}()
		if err := next(ctx, r); err != nil {
			return readError(err)
		}
		return nil
	}
}

// limitTime ends the context of a handler after its task's timeout, or else after the kind's. A
// timeout of 0 sets no limit.
func limitTime(kinds time.Duration) func(handlerFunc) handlerFunc {
	return func(next handlerFunc) handlerFunc {
		return func(ctx context.Context, r *run.Run) error {
			d := cmp.Or(store.ReadTimeout(r.Claim.Metadata), kinds)
			if d == 0 {
				return next(ctx, r)
			}
			ctx, stop := context.WithTimeoutCause(ctx, d, ErrTimeout)
			defer stop()
			defer r.Limit(d)()
			return next(ctx, r)
		}
	}
}

// addCause adds the cause of the context's end to a handler's error. It runs inside the function that ends the context,
// so it sees the first cause.
func addCause(next handlerFunc) handlerFunc {
	return func(ctx context.Context, r *run.Run) error { return withCause(ctx, next(ctx, r)) }
}

// withCause adds the cause of the end of the handler's context to its error.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// given returns the middleware that was passed to a method. If one of it is nil, given returns only an error.
func given[M Middleware | EnqueueMiddleware](method string, list []M) ([]M, error) {
	if slices.ContainsFunc(list, func(m M) bool { return m == nil }) {
		return nil, invalid("%s was called with nil middleware", method)
	}
	return list, nil
}

// refuse returns middleware that stores nothing and returns an error.
func refuse(err error) EnqueueMiddleware {
	return func(EnqueueFunc) EnqueueFunc {
		return func(context.Context, Tx, []EnqueueParams) ([]Receipt, error) { return nil, err }
	}
}

// enqueueAround wraps an enqueue in middleware of users, the first one outermost.
func enqueueAround(fn EnqueueFunc, list []EnqueueMiddleware) *EnqueueFunc {
	for i := len(list) - 1; i >= 0; i-- {
		fn = list[i](fn)
	}
	return &fn
}

// handlerAround wraps a handler in middleware of users, the first one outermost.
func handlerAround(inner handlerFunc, list []Middleware) handlerFunc {
	if len(list) == 0 {
		return inner
	}
	fn := HandlerFunc(func(ctx context.Context, shown *Run) error {
		err := inner(ctx, shown.task.(*run.Run))
		if err == nil {
			return nil
		}
		return &outcome.Shown{Err: err, Original: outcome.FailureOf(err).Err}
	})
	for i := len(list) - 1; i >= 0; i-- {
		fn = recovered(list[i](fn))
	}
	return func(ctx context.Context, r *run.Run) error {
		read := func(err error) error { return withCause(ctx, readShown(err)) }
		return read(fn(ctx, &Run{RunInfo: RunInfo(r.Info()), task: r, read: read}))
	}
}

// recovered turns a panic of middleware into an error.
func recovered(fn HandlerFunc) HandlerFunc {
	return func(ctx context.Context, run *Run) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: string(debug.Stack())}
			}
		}()
		return fn(ctx, run)
	}
}

// readError reads an error of a handler.
func readError(err error) *outcome.Failure { return outcome.Read(err, stackOf) }

// stackOf returns the stack of a panic or of a stuck handler that an error describes, or "".
func stackOf(err error) string {
	if p, ok := errors.AsType[*PanicError](err); ok {
		return p.Stack
	}
	if s, ok := errors.AsType[*outcome.StuckError](err); ok {
		return s.Stack
	}
	return ""
}

// stuckFailure returns the outcome of a stuck handler's run. err is the error that describes the stuck handler.
func (c Config) stuckFailure(r *run.Run, err error) *outcome.Failure {
	if c.OnStuck == nil {
		return readError(err)
	}
	decide := recovered(func(context.Context, *Run) error { return c.OnStuck(RunInfo(r.Info()), err) })
	switch decided := decide(context.Background(), nil); {
	case decided == nil:
		return readError(err)
	case errors.Is(decided, ErrStuck):
		return readError(decided)
	default:
		return readError(fmt.Errorf("%w: %w", err, decided))
	}
}

// readShown reads an error that middleware returned, as readError does.
func readShown(err error) error {
	switch e := err.(type) { //nolint:errorlint // an error that wraps it has a text of its own
	case nil:
		return nil
	case *outcome.Shown:
		return e.Err // it has been read
	}
	return readError(err)
}

// HandlerFunc runs the handler of a task and returns its error, or an error of middleware
// around it.
type HandlerFunc func(ctx context.Context, run *Run) error

// Middleware wraps the handlers of tasks ([Queue.Use], [Handle]). It is called once for each
// kind, with the next middleware or the handler. The returned function runs for each task:
//
//   - It calls next with its ctx or a context derived from ctx, and usually returns the error
//     of next. The returned value counts: nil makes the task done, and another error can
//     fail the task, or ask for another outcome ([Snooze], [Discard], [RetryAfter]). The
//     handler does not run if next is not called.
//   - After a panic of the handler or of inner middleware, next returns an error that wraps
//     a [PanicError]. A panic of the function itself fails the attempt likewise.
//   - The error of next matches the handler's error in errors.Is and errors.As. It also wraps
//     [ErrTimeout], [ErrStopping] or [ErrLeaseLost] if one of these has ended the handler's
//     context. [Run.Outcome] returns how the run would end with the error of next.
//
// [KindConfig].Timeout limits only the handler, not middleware around it.
type Middleware func(next HandlerFunc) HandlerFunc

// Run is a run of a task as middleware sees it. A Run that you make yourself, for a test of
// middleware, belongs to no worker: its Outcome depends only on Attempt and MaxAttempts, and its
// DoneTx returns an error that wraps [ErrInvalid].
type Run struct {
	RunInfo
	task runCalls
	read func(error) error // turns an error of middleware into the error that decides the outcome
}

// runCalls has the calls of a Run's methods: a *taskRun.
type runCalls interface {
	DoneTx(ctx context.Context, tx store.Tx) error
	WouldEnd(f *outcome.Failure) outcome.Outcome
}

// Outcome returns how the run ends if its handler and all middleware return err, such as the
// error of next. For a task that no longer belongs to the worker, it is [OutcomeCancelled] or
// [OutcomeLost] for any err. The worker settles the task later, and may still find the task lost.
// An [Event] has the final outcome.
func (r *Run) Outcome(err error) Outcome {
	if r.task == nil {
		if err != nil {
			err = readError(err)
		}
		return Outcome(outcome.ByHand(r.Attempt, r.MaxAttempts, outcome.ToEnd(err)))
	}
	return Outcome(r.task.WouldEnd(outcome.ToEnd(r.read(err))))
}

// DoneTx marks the task done inside tx, as [Task.DoneTx] does. With it, middleware can run each handler in a
// transaction.
func (r *Run) DoneTx(ctx context.Context, tx Tx) error {
	if r.task == nil {
		return invalid("the Run belongs to no worker: to test middleware, run a task with tasktest.RunOne")
	}
	if err := checkTx(tx); err != nil {
		return err
	}
	return r.task.DoneTx(ctx, tx)
}

// EnqueueFunc stores tasks, and returns a receipt for each of them.
type EnqueueFunc func(ctx context.Context, tx Tx, tasks []EnqueueParams) ([]Receipt, error)

// An EnqueueMiddleware returns a function that wraps next. [Queue.UseEnqueue] calls the EnqueueMiddleware once. The
// returned function then runs once for each enqueue call, with all of its tasks, before anything is stored. tx is the
// caller's transaction, or nil.
//
// The function can change the options of tasks, and add metadata. It must not change the number or the order of a
// flow's tasks, or the call fails with [ErrInvalid]. It passes tx, and its ctx or a context derived from ctx, to next,
// and returns a receipt for each task. To refuse the tasks, it returns an error without calling next. If tx is nil and
// next has returned nil, the tasks are committed, and an error of the function cannot undo that.
type EnqueueMiddleware func(next EnqueueFunc) EnqueueFunc
