package falldue

import (
	"context"
	"runtime/debug"
	"time"
)

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
	return func(ctx context.Context, r *taskRun) (err error) {
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
		return func(ctx context.Context, r *taskRun) error {
			ctx, stop := context.WithTimeoutCause(ctx, d, ErrTimeout)
			defer stop()
			return next(ctx, r)
		}
	}
}

// addCause adds to a handler's error why its context ended. It is inside of what
// ends the context, so that it sees the first cause.
func addCause(next handlerFunc) handlerFunc {
	return func(ctx context.Context, r *taskRun) error { return withCause(ctx, next(ctx, r)) }
}
