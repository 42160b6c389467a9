package retry

import (
	"context"
	"time"
)

const (
	// StatementTimeout is the longest time for a statement of a worker, so that a
	// connection that hangs does not block the worker indefinitely.
	StatementTimeout = 30 * time.Second
	// SweepTimeout is the longest time for a sweep, which takes seconds on an engine that
	// reads every waiting task for it. After its connections have gone silent, a worker
	// continues within a minute.
	SweepTimeout = 45 * time.Second
	// SuspectTimeout is the longest time for a claim from a suspect lane, for which all
	// other lanes of the queue wait.
	SuspectTimeout = 5 * time.Second
	// SettleTimeout is how long a settle may wait for rows that another transaction has
	// locked, before the settle is tried again without waiting for them.
	SettleTimeout = 3 * time.Second
	// SlowSettleTimeout is how long a settle that waits for no row locks may take. After a
	// failure the limit is SettleTimeout: such a settle may wait for another transaction
	// through a unique index of the user's, for example, while others wait for the settle.
	SlowSettleTimeout = 10 * time.Second
	// LastSettles is how long a worker tries to settle runs after the shutdown timeout.
	LastSettles = 5 * time.Second
	// cancelDelay is how long a statement may continue after its context has ended.
	cancelDelay = time.Second
	// ClaimDelay is how long a claim may continue after its context has ended. If the answer
	// of a claim is lost, its tasks wait for the end of their leases.
	ClaimDelay = 5 * time.Second
)

// ErrorPause returns how long to wait after a failure of the database that follows try
// other failures.
func ErrorPause(try int) time.Duration {
	return min(50*time.Millisecond<<min(try, 10), 5*time.Second)
}

// Pause waits for d, or until ctx ends, and returns ctx's error in that case.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// StatementContext returns a context for a statement that ends after timeout, and
// cancelDelay after ctx has ended. Most statements return within that time, and are
// not cancelled: cancelling closes the connection and can crash PgBouncer 1.18.
func StatementContext(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return DelayedContext(ctx, timeout, cancelDelay)
}

// DelayedContext returns a context that ends after timeout, and delay after ctx has
// ended.
func DelayedContext(ctx context.Context, timeout, delay time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(delay, cancel) })
	return later, func() {
		stop()
		cancel()
	}
}

// Signal wakes the goroutine that waits on c, or lets the next wait return immediately.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Await waits for d, until c is signalled, or until ctx ends. It reports whether c was
// signalled.
func Await(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}
