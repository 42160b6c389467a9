package falldue

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// shownError is the error of a handler as middleware and events see it: with what falldue has
// read from it, and with the error that the handler returned.
type shownError struct {
	err      error // what was read, and why the handler's context ended
	original error // or nil
}

func (e *shownError) Error() string        { return e.err.Error() }
func (e *shownError) Is(target error) bool { return errors.Is(e.err, target) }

// Unwrap returns the handler's error.
func (e *shownError) Unwrap() error { return e.original }

// failureOf returns the failure in an error to which withCause may have added a cause.
func failureOf(err error) *outcome.Failure {
	var f *outcome.Failure
	if !errors.As(err, &f) {
		f = &outcome.Failure{Text: err.Error()}
	}
	return f
}

// failureToEnd returns the failure with which a run ends whose handler, with its middleware,
// returned err: what was read from the handler's error, with the text and the causes of err. It
// is nil if err is.
func failureToEnd(err error) *outcome.Failure {
	if err == nil {
		return nil
	}
	f := *failureOf(err)
	f.Cancellation = f.Is(ErrStopping) || f.Is(context.Canceled)
	f.Text, f.Causes = storable.Text(err.Error()), outcome.CausesOf(err)
	return &f
}

// readTimeout is how long reading an error may take.
const readTimeout = time.Second

// readError reads an error that a handler returned. The error's methods belong to the
// user, and may panic or never return.
func readError(err error) *outcome.Failure {
	if standard(err) {
		return read(err)
	}
	result := make(chan *outcome.Failure, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				result <- &outcome.Failure{Text: fmt.Sprintf("the handler returned an error of type %T whose methods panic: %v", err, v)}
			}
		}()
		result <- read(err)
	}()
	timeout := time.NewTimer(readTimeout)
	defer timeout.Stop()
	select {
	case f := <-result:
		return f
	case <-timeout.C:
		return &outcome.Failure{Text: fmt.Sprintf("the handler returned an error of type %T whose methods do not return within %v", err, readTimeout)}
	}
}

// read calls the methods of an error.
func read(err error) *outcome.Failure {
	f := &outcome.Failure{Text: storable.Text(err.Error()), Err: err}
	f.Causes = outcome.CausesOf(err)
	f.Act, f.Wait = outcome.ActOf(err)
	var p *PanicError
	if errors.As(err, &p) {
		f.Stack = store.NotNull(storable.Text(p.Stack))
	}
	return f
}

var (
	plainError   = reflect.TypeOf(errors.New(""))
	wrappedError = reflect.TypeOf(fmt.Errorf("%w", ErrInvalid))
)

// standard reports whether an error and the errors that it wraps are of common types of
// falldue and the standard library, whose methods are safe to call.
func standard(err error) bool {
	const most = 100
	for range most {
		switch e := err.(type) { //nolint:errorlint // the loop unwraps
		case nil:
			return true
		case *outcome.RequestError:
			err = e.Err
			continue
		}
		switch reflect.TypeOf(err) {
		case plainError:
			return true
		case wrappedError:
			err = errors.Unwrap(err)
		default:
			return false
		}
	}
	return false
}
