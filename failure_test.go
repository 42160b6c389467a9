package falldue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/testdb"
)

// nilReader is an error whose Error method panics on a nil pointer.
type nilReader struct{ text string }

func (e *nilReader) Error() string { return e.text }

// endless is an error that wraps itself.
type endless struct{ next error }

func (e *endless) Error() string { return "endless" }
func (e *endless) Unwrap() error { return e.next }

// slow is an error whose Error method takes an hour.
type slow struct{}

func (slow) Error() string { time.Sleep(time.Hour); return "slow" }

// liar is an error whose other methods panic.
type liar struct{}

func (liar) Error() string   { return "liar" }
func (liar) Is(error) bool   { panic("compared") }
func (liar) As(any) bool     { panic("compared") }
func (liar) Unwrap() []error { panic("unwrapped") }

func TestErrorsThatCannotBeReadAreFailedAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"a typed nil":            {(*nilReader)(nil), "*falldue.nilReader whose methods panic"},
		"a joined typed nil":     {errors.Join((*nilReader)(nil), errors.New("x")), "whose methods panic"},
		"methods that panic":     {liar{}, "falldue.liar whose methods panic: compared"},
		"a text that takes long": {slow{}, "falldue.slow whose methods do not return within 1s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			fn := chain(handlerFunc(func(context.Context, *run.Run) error { return c.err }), limitTime(time.Minute), recoverPanics)
			start := time.Now()
			err := fn(t.Context(), &run.Run{})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %v, want %q", name, err, c.says)
			}
			if took := time.Since(start); took > readTimeout {
				t.Errorf("%s: reading it took %v", name, took)
			}
			time.Sleep(time.Hour) // until the goroutine ends
		})
	}
}

func TestReadingKeepsWhatAHandlerAskedFor(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err  error
		text string
		act  outcome.Act
		wait time.Duration
	}{
		"an error":                 {cause, "cause", outcome.ActNone, 0},
		"a wrapped error":          {fmt.Errorf("outer: %w", cause), "outer: cause", outcome.ActNone, 0},
		"Discard":                  {Discard(cause), "cause", outcome.ActDiscard, 0},
		"a wrapped Discard":        {fmt.Errorf("outer: %w", Discard(nil)), "outer: discarded", outcome.ActDiscard, 0},
		"Snooze":                   {Snooze(time.Hour), "snoozed for 1h0m0s", outcome.ActSnooze, time.Hour},
		"a joined RetryAfter":      {errors.Join(cause, RetryAfter(time.Second, nil)), "cause\nretry after 1s", outcome.ActRetryAfter, time.Second},
		"an error of another type": {&nilReader{"read"}, "read", outcome.ActNone, 0},
	} {
		f := readError(c.err)
		if f.Text != c.text || f.Act != c.act || f.Wait != c.wait {
			t.Errorf("%s: read as %q, %v, %v; want %q, %v, %v", name, f.Text, f.Act, f.Wait, c.text, c.act, c.wait)
		}
	}
	long := readError(errors.New(strings.Repeat("x", 1<<20)))
	if len(long.Text) > storable.MaxText+len("…") {
		t.Errorf("a long text is kept with %d bytes", len(long.Text))
	}
	for _, want := range []error{ErrStopping, ErrTimeout, ErrLeaseLost, context.Canceled} {
		if f := readError(fmt.Errorf("seen: %w", want)); !errors.Is(f, want) {
			t.Errorf("%v is not found in the error that wraps it", want)
		}
	}
}

func TestStandardErrorsNeedNoGoroutine(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("x"), fmt.Errorf("y: %w", errors.New("x")), Discard(errors.New("x")), Snooze(1), ErrStopping} {
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
// whether its own error says that its context ended.
func TestFailuresOfAStoppingWorkerAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err          error
		act          outcome.Act
		wait         time.Duration
		cancellation bool
	}{
		"an error":                    {errors.New("stopped"), outcome.ActNone, 0, false},
		"Snooze":                      {Snooze(time.Hour), outcome.ActSnooze, time.Hour, false},
		"RetryAfter":                  {RetryAfter(time.Hour, nil), outcome.ActRetryAfter, time.Hour, false},
		"Discard":                     {Discard(errors.New("gone")), outcome.ActDiscard, 0, false},
		"Discard of the cancellation": {Discard(fmt.Errorf("fetch: %w", context.Canceled)), outcome.ActDiscard, 0, true},
	} {
		f := failureToEnd(fmt.Errorf("%w: %w", ErrStopping, readError(c.err)))
		if !f.Is(ErrStopping) || f.Act != c.act || f.Wait != c.wait || f.Cancellation != c.cancellation {
			t.Errorf("%s: the failure is %+v", name, f)
		}
	}
}

func TestGoexitFailsTheAttempt(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	q, err := New(db, Config{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const exits = 3
	k := NewKind[int]("exits", KindConfig{Policy: backoff.Constant(0)})
	receipt, err := k.Enqueue(t.Context(), q, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
	defer stop()
	var failures []Attempt
	Handle(q, k, func(ctx context.Context, task Task[int]) (err error) {
		if task.Attempt <= exits {
			runtime.Goexit() // as a test's FailNow does
		}
		defer stop()
		failures, err = q.Attempts(ctx, receipt.ID)
		return err
	})
	if err := q.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(failures) != exits || !strings.Contains(failures[0].Error, "Goexit") {
		t.Errorf("attempts are recorded as %+v, want %d that failed", failures, exits)
	}
}
