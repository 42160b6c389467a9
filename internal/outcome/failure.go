package outcome

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Failure describes the error that a handler returned. The caller of the handler reads the error once, so
// that the engine calls none of the error's methods.
type Failure struct {
	Text   string
	Causes []error // the causes of the end of a handler's context that the error wraps
	Act    Act     // the outcome that the handler asked for
	Wait   time.Duration
	Stack  sql.Null[string] // of a panic
	// Cancellation means that the handler's own error is the end of its context.
	Cancellation bool
	Err          error // the error itself, or nil
}

func (f *Failure) Error() string { return f.Text }

// Is reports whether the error wraps target, a cause.
func (f *Failure) Is(target error) bool { return slices.Contains(f.Causes, target) }

// Act is an outcome that a handler asked for.
type Act int

// The outcomes that a handler may ask for.
const (
	ActNone Act = iota
	ActDiscard
	ActSnooze
	ActRetryAfter
	ActRepeat
)

// RequestError is an error that a handler returns to ask for an outcome other than a retry under
// the policy.
type RequestError struct {
	Act  Act
	Wait time.Duration
	Err  error // may be nil
}

func (e *RequestError) Error() string {
	switch {
	case e.Act == ActSnooze:
		return fmt.Sprintf("snoozed for %v", e.Wait)
	case e.Act == ActRepeat:
		return fmt.Sprintf("succeeded, and runs again after %v", e.Wait)
	case e.Err != nil:
		return e.Err.Error()
	case e.Act == ActDiscard:
		return "discarded"
	}
	return fmt.Sprintf("retry after %v", e.Wait)
}

func (e *RequestError) Unwrap() error { return e.Err }

// ActOf returns the outcome that a handler asks for with an error, and how long its task then waits.
func ActOf(err error) (Act, time.Duration) {
	if e, ok := errors.AsType[*RequestError](err); ok {
		return e.Act, e.Wait
	}
	return ActNone, 0
}

// Outcome returns the outcome that a handler asked for, if the policy allows another attempt.
func (a Act) Outcome() Outcome {
	return [...]Outcome{ActNone: Retried, ActDiscard: Discarded, ActSnooze: Snoozed, ActRetryAfter: RetriedAfter, ActRepeat: Repeated}[a]
}

// These are causes of the end of a handler's context. The public package documents them.
var (
	ErrLeaseLost       = errors.New("falldue: lease lost")
	ErrCancelled error = cancelledError{}
	ErrTimeout         = errors.New("falldue: handler timed out")
	ErrStopping        = errors.New("falldue: worker is stopping")
	ErrStuck           = errors.New("falldue: handler is stuck")
)

// ErrPayload is wrapped by the failure of a run whose payload could not be decoded.
var ErrPayload = errors.New("decode the payload")

// ErrNotCommitted is the failure of a handler that called DoneTx and returned nil, though the
// transaction of DoneTx did not commit.
var ErrNotCommitted = errors.New("falldue: DoneTx was called, but its transaction did not commit")

// NotCommitted returns a failure with ErrNotCommitted. cause is why the handler's context ended, or nil.
func NotCommitted(cause error) *Failure {
	f := &Failure{Text: ErrNotCommitted.Error(), Err: ErrNotCommitted}
	if cause != nil {
		f.Text, f.Causes = cause.Error()+": "+f.Text, CausesOf(cause)
	}
	return f
}

// IsUncommitted reports whether [NotCommitted] made f.
func (f *Failure) IsUncommitted() bool { return f != nil && f.Err == ErrNotCommitted } //nolint:errorlint // a handler's error may wrap it

// CausesOf lists the causes of the end of a handler's context that an error wraps, including
// context.Canceled and ErrPayload.
func CausesOf(err error) (list []error) {
	for _, cause := range []error{ErrStopping, ErrTimeout, ErrLeaseLost, ErrPayload, context.Canceled} {
		if errors.Is(err, cause) {
			list = append(list, cause)
		}
	}
	return list
}

// cancelledError is a lost lease. Its text states only why the lease was lost.
type cancelledError struct{}

func (cancelledError) Error() string { return "falldue: task was cancelled" }

// Unwrap returns [ErrLeaseLost].
func (cancelledError) Unwrap() error { return ErrLeaseLost }

// StuckError is the error of a run whose handler has not returned although its context has ended.
type StuckError struct {
	After time.Duration // the time after the end of the context
	Cause error         // of the end
	Stack string        // of the handler
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("%v: it has not returned within %v of the end of its context: %v", ErrStuck, e.After, e.Cause)
}

// Unwrap returns [ErrStuck] and the cause of the end of the context.
func (e *StuckError) Unwrap() []error { return []error{ErrStuck, e.Cause} }

// Goexit is the failure of a handler that called runtime.Goexit.
var Goexit = &Failure{Text: "the handler called runtime.Goexit"}
