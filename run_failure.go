package falldue

import (
	"database/sql"
	"errors"
	"slices"
	"time"
)

// failure describes the error that a handler returned. Whoever calls the handler reads the
// error once, so that the engine calls none of its methods.
type failure struct {
	text  string
	is    []error // of the causes of the end of a handler's context those that the error wraps
	act   act     // the outcome that the handler asked for
	wait  time.Duration
	stack sql.Null[string] // of a panic
	// cancellation means that the handler's own error says that its context ended.
	cancellation bool
	err          error // the error itself, or nil
}

func (f *failure) Error() string        { return f.text }
func (f *failure) Is(target error) bool { return slices.Contains(f.is, target) }

// act is an outcome that a handler asked for.
type act int

const (
	actNone act = iota
	actDiscard
	actSnooze
	actRetryAfter
)

// These are causes of the end of a handler's context. The public package documents them.
var (
	ErrLeaseLost       = errors.New("falldue: lease lost")
	ErrCancelled error = cancelledError{}
	ErrTimeout         = errors.New("falldue: handler timed out")
	ErrStopping        = errors.New("falldue: worker is stopping")
)

// ErrNotCommitted is the failure of a handler that called DoneTx and returned nil, though the
// transaction of DoneTx did not commit.
var ErrNotCommitted = errors.New("falldue: DoneTx was called, and its transaction did not commit")

// notCommitted returns that failure of a handler whose context ended with a cause or nil.
func notCommitted(cause error) *failure {
	f := &failure{text: ErrNotCommitted.Error(), err: ErrNotCommitted}
	if cause != nil {
		f.text, f.is = cause.Error()+": "+f.text, causesOf(cause)
	}
	return f
}

func (f *failure) isUncommitted() bool { return f != nil && f.err == ErrNotCommitted } //nolint:errorlint // a handler's error may wrap it

// cancelledError is a lost lease. Its text states only why the lease was lost.
type cancelledError struct{}

func (cancelledError) Error() string { return "falldue: task was cancelled" }

// Unwrap returns [ErrLeaseLost].
func (cancelledError) Unwrap() error { return ErrLeaseLost }

// errGoexit is the failure of a handler that called runtime.Goexit.
var errGoexit = &failure{text: "the handler called runtime.Goexit"}
