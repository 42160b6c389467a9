package falldue

import (
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Errors to test for with errors.Is.
var (
	// ErrLeaseLost is returned by Task.DoneTx, and is the cause of a handler's
	// cancelled context, when the task is no longer this worker's: its lease
	// ran out and another worker may run it, or somebody cancelled it.
	ErrLeaseLost = errors.New("falldue: lease lost")
	// ErrTimeout is the cause of a handler's context that ended because the
	// kind's Timeout was over.
	ErrTimeout = errors.New("falldue: handler timed out")
	// ErrStopping is the cause of a handler's context that ended because the
	// worker was told to stop and the grace period was over.
	ErrStopping = errors.New("falldue: worker is stopping")
	// ErrNotFound is returned by Queue.Task, Retry and Cancel for an id that
	// is not there, or not in a state that allows it.
	ErrNotFound = store.ErrNotFound
	// ErrInvalid is wrapped by every error about what a caller passed in: a
	// configuration, a kind, arguments, options. Its text names the value and
	// what is allowed.
	ErrInvalid = errors.New("falldue: invalid")
	// ErrNotMigrated is wrapped by errors that come from missing tables: run
	// Queue.Migrate, or "falldue migrate up".
	ErrNotMigrated = store.ErrNotMigrated
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// PanicError is what a handler's panic becomes. It counts as a failed attempt.
type PanicError struct {
	// Value is what the handler panicked with.
	Value any
	// Stack is the stack of the handler's goroutine.
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap gives the panic's value where it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// verdict is an error that a handler returns to say how its task goes on.
type verdict struct {
	act  act
	wait time.Duration
	err  error
}

type act int

const (
	actNone act = iota
	actDiscard
	actSnooze
	actRetryAfter
)

func (v *verdict) Error() string {
	switch {
	case v.act == actDiscard && v.err == nil:
		return "discarded"
	case v.act == actDiscard:
		return v.err.Error()
	case v.act == actSnooze:
		return fmt.Sprintf("snoozed for %v", v.wait)
	case v.err == nil:
		return fmt.Sprintf("retry after %v", v.wait)
	}
	return v.err.Error()
}

func (v *verdict) Unwrap() error { return v.err }

// Discard makes a handler's task dead at once, however many attempts are left.
// err, which may be nil, is kept as its last error.
func Discard(err error) error { return &verdict{act: actDiscard, err: err} }

// Snooze makes a handler's task run again d from now, without using up an
// attempt and without the policy's delay on top. A negative d counts as 0.
func Snooze(d time.Duration) error { return &verdict{act: actSnooze, wait: max(d, 0)} }

// RetryAfter makes a handler's task run again d from now instead of after the
// policy's delay: what an HTTP server says in its Retry-After header. It is a
// failure: it uses up an attempt, the policy's limits hold, and err, which may
// be nil, is recorded. A negative d counts as 0.
func RetryAfter(d time.Duration, err error) error {
	return &verdict{act: actRetryAfter, wait: max(d, 0), err: err}
}
