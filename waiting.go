package falldue

import (
	"context"
	"time"
)

const (
	// statementTimeout bounds each statement that no user waits for, so that a
	// connection that hangs does not block a worker for ever.
	statementTimeout = 30 * time.Second
	// sweepTimeout bounds a sweep, which takes seconds where an engine reads every
	// waiting task for it.
	sweepTimeout = 2 * statementTimeout
	// settleTimeout is how long a settle may wait before it is tried again without
	// waiting for rows that somebody has locked.
	settleTimeout = 3 * time.Second
	// lastSettles is how long a worker tries to settle after the shutdown timeout.
	lastSettles = 5 * time.Second
	// cancelDelay is how long a statement may go on after its role was told to stop.
	cancelDelay = time.Second
)

// errorPause is how long to leave a database alone that failed try times before.
func errorPause(try int) time.Duration {
	return min(50*time.Millisecond<<min(try, 10), 5*time.Second)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// statementContext returns the context of a statement of a role that works until
// ctx ends: it ends after timeout, and cancelDelay after ctx does. A statement
// that is about to return need not be cancelled, which closes the connection and
// can crash PgBouncer 1.18.
func statementContext(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(cancelDelay, cancel) })
	return later, func() {
		stop()
		cancel()
	}
}

// signal wakes whoever waits on c, now or when it next waits.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// await sleeps for d, until c is signalled, or until ctx ends.
func await(ctx context.Context, c <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-c:
	case <-t.C:
	}
}
