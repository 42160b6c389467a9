package outcome

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// Shown is a handler's error as middleware and events see it: the failure that was read from the error, and
// the error itself.
type Shown struct {
	Err      error // the failure that was read, and why the handler's context ended
	Original error // the handler's error, or nil
}

func (e *Shown) Error() string { return e.Err.Error() }

// Is reports whether the error that was read is target.
func (e *Shown) Is(target error) bool { return errors.Is(e.Err, target) }

// Unwrap returns the handler's error.
func (e *Shown) Unwrap() error { return e.Original }

// FailureOf returns the failure that an error is or wraps, or else a failure with the text of the error.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Text: err.Error()}
}

// ToEnd returns the failure with which a run ends after the outermost middleware has returned err. The failure has
// the text and the causes of err, and all else from the handler's own error. ToEnd returns nil if err is nil.
func ToEnd(err error) *Failure {
	if err == nil {
		return nil
	}
	read := FailureOf(err)
	cancelled, text := read.Is(ErrStopping) || read.Is(context.Canceled), storable.Text(err.Error())
	if err == error(read) && text == read.Text && cancelled == read.Cancellation { //nolint:errorlint // an error that wraps it has causes of its own
		return read // most failures are
	}
	f := *read
	f.Cancellation, f.Text, f.Causes = cancelled, text, CausesOf(err)
	return &f
}

// readTimeout is how long reading an error may take.
const readTimeout = time.Second

// Read reads an error that a handler returned. The error's methods belong to the user, and may panic or
// never return. stack returns the stack of a panic that an error describes, or "".
func Read(err error, stack func(error) string) *Failure {
	if standard(err) {
		return read(err, stack)
	}
	result := make(chan *Failure, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				result <- &Failure{Text: fmt.Sprintf("the handler returned an error of type %T whose methods panic: %v", err, v)}
			}
		}()
		result <- read(err, stack)
	}()
	timeout := time.NewTimer(readTimeout)
	defer timeout.Stop()
	select {
	case f := <-result:
		return f
	case <-timeout.C:
		return &Failure{Text: fmt.Sprintf("the handler returned an error of type %T whose methods do not return within %v", err, readTimeout)}
	}
}

// read calls the methods of an error.
func read(err error, stack func(error) string) *Failure {
	f := &Failure{Text: storable.Text(err.Error()), Err: err}
	if f.Text == "" {
		f.Text = fmt.Sprintf("an error of type %T without a text", err)
	}
	f.Causes = CausesOf(err)
	f.Act, f.Wait = ActOf(err)
	if text := stack(err); text != "" {
		f.Stack = store.NotNull(storable.Text(text))
	}
	return f
}

var (
	plainError   = reflect.TypeOf(errors.New(""))
	wrappedError = reflect.TypeOf(fmt.Errorf("%w", ErrPayload))
)

// standard reports whether an error and the errors that it wraps are of common types of
// falldue and the standard library, whose methods are safe to call.
func standard(err error) bool {
	const most = 100
	for range most {
		switch e := err.(type) { //nolint:errorlint // the loop unwraps
		case nil:
			return true
		case *RequestError:
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
