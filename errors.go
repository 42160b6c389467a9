package falldue

import (
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
)

// Errors to test for with errors.Is. Most calls return them wrapped in an error with more details.
var (
	// ErrLeaseLost means that a task no longer belongs to the worker: its lease ended and another worker may run it, or
	// the task was cancelled. Task.DoneTx returns it, and the handler's context ends with it as the cause.
	ErrLeaseLost = outcome.ErrLeaseLost
	// ErrCancelled is the cause of the end of a handler's context when the task was
	// cancelled while it ran ([Queue.Cancel]). It wraps ErrLeaseLost.
	ErrCancelled = outcome.ErrCancelled
	// ErrTimeout is the cause of the end of a handler's context when the handler
	// ran for longer than KindConfig.Timeout.
	ErrTimeout = outcome.ErrTimeout
	// ErrStopping is the cause of the end of a handler's context when the handler still ran at the end of
	// Config.ShutdownTimeout, which begins when Run's context ends.
	ErrStopping = outcome.ErrStopping
	// ErrStuck means that a handler did not return within Config.StuckTimeout of the end of its context. [Queue.Run]
	// returns it if such handlers still run.
	ErrStuck = outcome.ErrStuck
	// ErrNotCommitted is the error of an attempt whose handler called DoneTx and returned nil,
	// though the transaction of DoneTx did not commit. See [Task.DoneTx].
	ErrNotCommitted = outcome.ErrNotCommitted
	// ErrNotFound means that the task, schedule, per-task policy or flow of a call does not exist.
	ErrNotFound = store.ErrNotFound
	// ErrWrongState means that a call that changes one task, such as Queue.Retry, found the task in a state that
	// does not allow the change, or with another fencing token than expected. The text names the state or token.
	ErrWrongState = errors.New("falldue: wrong state")
	// ErrRunning means that a task is running. Queue.Delete returns it.
	ErrRunning = errors.New("falldue: task is running")
	// ErrNoResult means that a task has no result. ResultOf returns it.
	ErrNoResult = errors.New("falldue: no result")
	// ErrInvalid means that a value that the caller passed is not allowed: a configuration, a kind, arguments, or
	// options. The text names the value and the rule.
	ErrInvalid = errors.New("falldue: invalid")
	// ErrNotMigrated means that falldue's tables do not exist. Call Queue.Migrate, or run
	// "falldue migrate up".
	ErrNotMigrated = store.ErrNotMigrated
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// PanicError is the error of an attempt whose handler panicked. The attempt counts as failed.
type PanicError struct {
	// Value is the value with which the handler panicked.
	Value any
	// Stack is the stack of the handler's goroutine.
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error, and nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Discard returns an error with which a handler makes its task dead immediately, however many attempts are left. The
// text of err is recorded as the task's last error. err can be nil.
func Discard(err error) error { return &outcome.RequestError{Act: outcome.ActDiscard, Err: err} }

// Snooze returns an error with which a handler makes its task due again after d. The run uses up no attempt,
// and the policy's delay is not added. A negative d counts as 0.
func Snooze(d time.Duration) error {
	return &outcome.RequestError{Act: outcome.ActSnooze, Wait: max(d, 0)}
}

// Again returns an error with which a handler ends a successful run, and asks to run again after d. It suits a
// handler that polls, for example. Earlier failures no longer count: the next run is attempt 1. A negative d counts
// as 0.
func Again(d time.Duration) error {
	return &outcome.RequestError{Act: outcome.ActRepeat, Wait: max(d, 0)}
}

// RetryAfter returns an error with which a handler makes its task due again after d, instead of after the policy's
// delay. Use it for the Retry-After header of an HTTP server, for example. The run is a failure: it uses up an
// attempt, the policy's limits apply, and the text of err is recorded. err can be nil. A negative d counts as 0.
func RetryAfter(d time.Duration, err error) error {
	return &outcome.RequestError{Act: outcome.ActRetryAfter, Wait: max(d, 0), Err: err}
}
