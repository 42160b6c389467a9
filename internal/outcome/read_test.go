package outcome

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/storable"
)

// nilReader is an error whose Error method panics on a nil pointer.
type nilReader struct{ text string }

func (e *nilReader) Error() string { return e.text }

// endless is an error that wraps itself.
type endless struct{ next error }

func (e *endless) Error() string { return "endless" }
func (e *endless) Unwrap() error { return e.next }

// liar is an error whose other methods panic.
type liar struct{}

func (liar) Error() string   { return "liar" }
func (liar) Is(error) bool   { panic("compared") }
func (liar) As(any) bool     { panic("compared") }
func (liar) Unwrap() []error { panic("unwrapped") }

func readIt(err error) *Failure { return Read(err, func(error) string { return "" }) }

func discard(err error) error      { return &RequestError{Act: ActDiscard, Err: err} }
func snooze(d time.Duration) error { return &RequestError{Act: ActSnooze, Wait: d} }
func retryAfter(d time.Duration, err error) error {
	return &RequestError{Act: ActRetryAfter, Wait: d, Err: err}
}

func TestReadingKeepsWhatAHandlerAskedFor(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err  error
		text string
		act  Act
		wait time.Duration
	}{
		"an error":                 {cause, "cause", ActNone, 0},
		"a wrapped error":          {fmt.Errorf("outer: %w", cause), "outer: cause", ActNone, 0},
		"Discard":                  {discard(cause), "cause", ActDiscard, 0},
		"a wrapped Discard":        {fmt.Errorf("outer: %w", discard(nil)), "outer: discarded", ActDiscard, 0},
		"Again":                    {&RequestError{Act: ActRepeat, Wait: time.Hour}, "succeeded, and runs again after 1h0m0s", ActRepeat, time.Hour},
		"Snooze":                   {snooze(time.Hour), "snoozed for 1h0m0s", ActSnooze, time.Hour},
		"a joined RetryAfter":      {errors.Join(cause, retryAfter(time.Second, nil)), "cause\nretry after 1s", ActRetryAfter, time.Second},
		"an error of another type": {&nilReader{"read"}, "read", ActNone, 0},
	} {
		f := readIt(c.err)
		if f.Text != c.text || f.Act != c.act || f.Wait != c.wait {
			t.Errorf("%s: read as %q, %v, %v; want %q, %v, %v", name, f.Text, f.Act, f.Wait, c.text, c.act, c.wait)
		}
	}
	long := readIt(errors.New(strings.Repeat("x", 1<<20)))
	if len(long.Text) > storable.MaxText+len("…") {
		t.Errorf("a long text is kept with %d bytes", len(long.Text))
	}
	for _, want := range []error{ErrStopping, ErrTimeout, ErrLeaseLost, context.Canceled} {
		if f := readIt(fmt.Errorf("seen: %w", want)); !errors.Is(f, want) {
			t.Errorf("%v is not found in the error that wraps it", want)
		}
	}
}

func TestStandardErrorsNeedNoGoroutine(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("x"), fmt.Errorf("y: %w", errors.New("x")), discard(errors.New("x")), snooze(1), ErrStopping} {
		if !standard(err) {
			t.Errorf("%T is read by a goroutine", err)
		}
	}
	loop := &endless{}
	loop.next = loop
	for _, err := range []error{&nilReader{}, liar{}, fmt.Errorf("%w", liar{}), loop, errors.Join(errors.New("x"), liar{})} {
		if standard(err) {
			t.Errorf("%T is read without a timeout", err)
		}
	}
}

// TestFailuresOfAStoppingWorkerAreRead: the failure has the outcome that the handler asked for, and
// shows whether the handler's own error is the end of its context.
func TestFailuresOfAStoppingWorkerAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err          error
		act          Act
		wait         time.Duration
		cancellation bool
	}{
		"an error":                    {errors.New("stopped"), ActNone, 0, false},
		"Snooze":                      {snooze(time.Hour), ActSnooze, time.Hour, false},
		"RetryAfter":                  {retryAfter(time.Hour, nil), ActRetryAfter, time.Hour, false},
		"Discard":                     {discard(errors.New("gone")), ActDiscard, 0, false},
		"Discard of the cancellation": {discard(fmt.Errorf("fetch: %w", context.Canceled)), ActDiscard, 0, true},
	} {
		f := ToEnd(fmt.Errorf("%w: %w", ErrStopping, readIt(c.err)))
		if !f.Is(ErrStopping) || f.Act != c.act || f.Wait != c.wait || f.Cancellation != c.cancellation {
			t.Errorf("%s: the failure is %+v", name, f)
		}
	}
}

// TestAnErrorWithoutText: an empty text would hide the failure from lists of errors.
func TestAnErrorWithoutText(t *testing.T) {
	for _, err := range []error{errors.New(""), fmt.Errorf("%w", errors.New("")), retryAfter(time.Second, errors.New(""))} {
		want := fmt.Sprintf("an error of type %T without a text", err)
		if f := readIt(err); f.Text != want || ToEnd(f).Text != want {
			t.Errorf("the text is %q and then %q, want %q", f.Text, ToEnd(f).Text, want)
		}
	}
}
