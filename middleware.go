package falldue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/run"
)

// handlerFunc runs the handler of a claimed task.
type handlerFunc func(ctx context.Context, r *run.Run) error

// chain wraps fn, a [handlerFunc] or an [enqueueFunc], in middleware. The first one is
// the outermost.
func chain[F any](fn F, list ...func(next F) F) F {
	for i := len(list) - 1; i >= 0; i-- {
		fn = list[i](fn)
	}
	return fn
}

// recoverPanics turns a panic of a handler into an error, and the handler's error
// into a *failure. It reads the error here because that calls methods of the
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

// limitTime ends the context of a handler after d. A d of 0 sets no limit.
func limitTime(d time.Duration) func(handlerFunc) handlerFunc {
	return func(next handlerFunc) handlerFunc {
		if d == 0 {
			return next
		}
		return func(ctx context.Context, r *run.Run) error {
			ctx, stop := context.WithTimeoutCause(ctx, d, ErrTimeout)
			defer stop()
			return next(ctx, r)
		}
	}
}

// addCause adds to a handler's error why its context ended. It is inside of what
// ends the context, so that it sees the first cause.
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

// given returns middleware as it was passed to a method, and none and an error if one is nil.
func given[M Middleware | EnqueueMiddleware](method string, list []M) ([]M, error) {
	if slices.ContainsFunc(list, func(m M) bool { return m == nil }) {
		return nil, invalid("middleware that %s was given is nil", method)
	}
	return list, nil
}

// refuse is middleware that stores nothing, for an error.
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
		return &shownError{err: err, original: failureOf(err).Err}
	})
	for i := len(list) - 1; i >= 0; i-- {
		fn = recovered(list[i](fn))
	}
	return func(ctx context.Context, r *run.Run) error {
		read := func(err error) error { return withCause(ctx, readShown(err)) }
		return read(fn(ctx, &Run{RunInfo: RunInfo(r.Info()), task: r, read: read}))
	}
}

// recovered makes an error of a panic of middleware.
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

// readShown reads an error that middleware returned, as readError does.
func readShown(err error) error {
	switch e := err.(type) { //nolint:errorlint // an error that wraps it has a text of its own
	case nil:
		return nil
	case *shownError:
		return e.err // it has been read
	}
	return readError(err)
}
