package signals

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
)

// otherError is the type of errors that have none of their own.
const otherError = "_OTHER"

// errorOf returns the error of a run that ended with an outcome: nil if err is what Snooze or Again returned.
func errorOf(outcome falldue.Outcome, err error) error {
	if outcome == falldue.OutcomeSnoozed || outcome == falldue.OutcomeRepeated {
		return nil
	}
	return err
}

// ErrorType returns a short name for an error of a handler, for labels. It returns "" for nil, and "timeout", "panic",
// "stopping" or "lease_lost" for errors of falldue. For other errors, it returns the type of the innermost error, such
// as "*net.OpError", or "_OTHER" if that error has no specific type.
func ErrorType(err error) string {
	if err == nil {
		return ""
	}
	switch {
	case errors.Is(err, falldue.ErrTimeout):
		return "timeout"
	case errors.Is(err, falldue.ErrLeaseLost):
		return "lease_lost"
	case errors.Is(err, falldue.ErrStopping):
		return "stopping"
	}
	if _, ok := errors.AsType[*falldue.PanicError](err); ok {
		return "panic"
	}
	name := typeOf(err)
	if name == "" {
		return otherError
	}
	return name
}

// typeOf returns the innermost type of an error that says more than that it is one, or "". Of
// several wrapped errors it follows the last one, since falldue puts causes first.
func typeOf(err error) (name string) {
	const most = 100 // a chain may be a circle
	for range most {
		if t := reflect.TypeOf(err); !anonymous(t) {
			name = t.String()
		}
		switch e := err.(type) { //nolint:errorlint // the loop unwraps
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			list := e.Unwrap()
			if len(list) == 0 {
				return name
			}
			err = list[len(list)-1]
		default:
			return name
		}
		if err == nil {
			return name
		}
	}
	return name
}

// anonymous reports whether a type of errors is one of those that errors.New, fmt.Errorf and falldue
// make of any text.
func anonymous(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return slices.Contains(anonymousIn, t.PkgPath())
}

// anonymousIn are the packages with such types.
var anonymousIn = []string{"errors", "fmt", "github.com/falldue/falldue", "github.com/falldue/falldue/internal/outcome"}

// classType returns the label of a class of the database's errors.
func classType(err error, c dialect.Class) string {
	if err == nil {
		return ""
	}
	return strings.NewReplacer(" ", "_", "-", "_").Replace(c.String())
}
