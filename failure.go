package falldue

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// failure is what falldue reads from an error that a handler returned. It is read
// once, so that no method of a handler's error runs later, or under a lock.
type failure struct {
	text  string
	is    []error // which of the causes it wraps
	act   act     // what the handler asked for
	wait  time.Duration
	stack sql.Null[string] // of a panic
}

func (f *failure) Error() string        { return f.text }
func (f *failure) Is(target error) bool { return slices.Contains(f.is, target) }

// causes are why a handler's context ends.
var causes = []error{ErrStopping, ErrTimeout, ErrLeaseLost}

// failureOf returns what was read from a handler's error before its cause was
// added.
func failureOf(err error) *failure {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{text: err.Error()}
	}
	return f
}

// readTimeout is how long reading an error may take.
const readTimeout = time.Second

// readError reads an error that a handler returned. Its methods are not ours: they
// may panic, or never return.
func readError(err error) *failure {
	if standard(err) {
		return read(err)
	}
	result := make(chan *failure, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				result <- &failure{text: fmt.Sprintf("the handler returned an error of type %T whose methods panic: %v", err, v)}
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
		return &failure{text: fmt.Sprintf("the handler returned an error of type %T whose methods do not return within %v", err, readTimeout)}
	}
}

// read calls the methods of an error.
func read(err error) *failure {
	f := &failure{text: clean(err.Error())}
	for _, cause := range causes {
		if errors.Is(err, cause) {
			f.is = append(f.is, cause)
		}
	}
	var v *verdict
	if errors.As(err, &v) {
		f.act, f.wait = v.act, v.wait
	}
	var p *PanicError
	if errors.As(err, &p) {
		f.stack = notNull(clean(p.Stack))
	}
	return f
}

var (
	plainError   = reflect.TypeOf(errors.New(""))
	wrappedError = reflect.TypeOf(fmt.Errorf("%w", ErrInvalid))
)

// standard reports whether an error and those that it wraps are of falldue's and
// of the standard library's common types, whose methods can be called as they are.
func standard(err error) bool {
	const most = 100
	for range most {
		switch e := err.(type) { //nolint:errorlint // of each error in the chain
		case nil:
			return true
		case *verdict:
			err = e.err
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
