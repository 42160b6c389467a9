package falldue

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// nilReader is an error whose Error method panics on a nil pointer.
type nilReader struct{ text string }

func (e *nilReader) Error() string { return e.text }

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
			err := fn(t.Context(), &run.Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %v, want %q", name, err, c.says)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: reading it took %v", name, took)
			}
			time.Sleep(time.Hour) // until the goroutine ends
		})
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
