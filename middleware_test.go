package falldue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestTheFirstCauseIsTheOneReported: a handler that timed out and returns after the
// worker was stopped has timed out.
func TestTheFirstCauseIsTheOneReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		fn := chain(handlerFunc(func(ctx context.Context, _ *run.Run) error {
			<-ctx.Done()
			stop(ErrStopping)
			return errors.New("late")
		}), limitTime(time.Second), addCause, recoverPanics)
		err := fn(ctx, &run.Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}}})
		if !errors.Is(err, ErrTimeout) || errors.Is(err, ErrStopping) || !strings.HasSuffix(err.Error(), "timed out: late") {
			t.Errorf("error %v, want that of the timeout", err)
		}
	})
}

// TestRunsWithoutMiddlewareAllocateNothing for what only middleware, hooks and metadata need.
func TestRunsWithoutMiddlewareAllocateNothing(t *testing.T) {
	r := &run.Run{Env: &run.Env{Queue: "q"}, ClaimResult: outcome.ClaimResult{Claim: &store.Claim{Claimed: statements.Claimed{ID: 1}}, Policy: control.Compile(backoff.Constant(0))}}
	unobserved := &publisher{}
	untimed := limitTime(0)(func(context.Context, *run.Run) error { return nil })
	for name, f := range map[string]func(){
		"timeout":     func() { _ = untimed(t.Context(), r) },
		"info":        func() { r.Info() },
		"no observer": func() { (*publisher)(nil).Ended(r, outcome.Done, 0) },
		"no events":   func() { unobserved.Started(r); unobserved.Ended(r, outcome.Done, 0) },
		"no hooks": func() {
			unobserved.Claimed("q", 2, nil, time.Time{}, nil)
			unobserved.Settled(1, store.Unsettled{}, time.Time{}, nil)
			unobserved.Extended(1, store.Unsettled{}, time.Time{}, nil)
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestOvertimeIsAnEvent of the run, whose Took is the timeout.
func TestOvertimeIsAnEvent(t *testing.T) {
	t.Parallel()
	var got []Event
	hooks := publisher{hooks: Hooks{Overtime: func(e Event) { got = append(got, e) }}}
	claim := &store.Claim{Claimed: statements.Claimed{ID: 7}, From: store.Lane{Kind: "k"}}
	r := &run.Run{Env: &run.Env{Queue: "q"}, ClaimResult: outcome.ClaimResult{Claim: claim, WorkerID: "w", Policy: control.Compile(backoff.Constant(0))}}
	hooks.Overtime(r, time.Minute)
	if len(got) != 1 || got[0].ID != 7 || got[0].Kind != "k" || got[0].Queue != "q" || got[0].Took != time.Minute || got[0].Worker != "w" || got[0].Outcome != OutcomeNone {
		t.Errorf("the hook was called with %+v", got)
	}
}

// TestMiddlewareSeesTheHandlersError: the error of next is the handler's for errors.As, has why
// its context ended for errors.Is, and is read only once.
func TestMiddlewareSeesTheHandlersError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var saw error
		var shownOutcome Outcome
		mine := &countedError{}
		inner := chain(handlerFunc(func(ctx context.Context, _ *run.Run) error {
			<-ctx.Done()
			return mine
		}), limitTime(time.Second), addCause, recoverPanics)
		fn := handlerAround(inner, []Middleware{func(next HandlerFunc) HandlerFunc {
			return func(ctx context.Context, shown *Run) error {
				saw = next(ctx, shown)
				shownOutcome = shown.Outcome(saw)
				if ctx.Err() != nil {
					t.Error("the timeout of the handler has ended the context of middleware")
				}
				return saw
			}
		}})
		r := &run.Run{Env: &run.Env{Queue: "q"}, ClaimResult: outcome.ClaimResult{Claim: &store.Claim{Attempts: 1}, Policy: control.Compile(backoff.Constant(0).WithMaxAttempts(1))}}
		err := fn(t.Context(), r)
		var as *countedError
		if !errors.Is(saw, ErrTimeout) || !errors.As(saw, &as) || as != mine || shownOutcome != OutcomeDead {
			t.Errorf("middleware sees %v as %s", saw, shownOutcome)
		}
		if mine.calls != 1 || err.Error() != saw.Error() {
			t.Errorf("the error was read %d times; the outcome is %v", mine.calls, err)
		}
	})
}

// TestMiddlewareSeesWhatTheJitterDecides: whether an attempt is the last one, if its jitter
// decides that.
func TestMiddlewareSeesWhatTheJitterDecides(t *testing.T) {
	t.Parallel()
	policy, err := backoff.Parse("delay 0; jitter 1h; elapsed 30m")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Outcome]int{}
	for range 100 {
		var shownOutcome Outcome
		fn := handlerAround(recoverPanics(func(context.Context, *run.Run) error { return errors.New("flaky") }), []Middleware{func(next HandlerFunc) HandlerFunc {
			return func(ctx context.Context, shown *Run) error {
				err := next(ctx, shown)
				shownOutcome = shown.Outcome(err)
				return err
			}
		}})
		r := &run.Run{Env: &run.Env{Queue: "q"}, ClaimResult: outcome.ClaimResult{Claim: &store.Claim{Attempts: 1}, Policy: control.Compile(policy), Answered: time.Now()}}
		e, _ := r.Finish(outcome.ToEnd(fn(t.Context(), r)), 0)
		if got := Outcome(outcome.Of(&e, r.Failure)); got != shownOutcome {
			t.Fatalf("middleware has seen %s, and the outcome is %s", shownOutcome, got)
		}
		seen[shownOutcome]++
	}
	if seen[OutcomeDead] == 0 || seen[OutcomeRetried] == 0 {
		t.Errorf("the outcomes are %v", seen)
	}
}

// countedError counts the calls of its method.
type countedError struct{ calls int }

func (e *countedError) Error() string {
	e.calls++
	return "mine"
}

// TestARunByHand: a test of middleware needs no worker to make a Run.
func TestARunByHand(t *testing.T) {
	t.Parallel()
	errDown := errors.New("the service is down")
	for _, c := range []struct {
		run  RunInfo
		err  error
		want Outcome
	}{
		{RunInfo{}, nil, OutcomeDone},
		{RunInfo{}, errDown, OutcomeRetried},
		{RunInfo{Attempt: 1000}, errDown, OutcomeRetried},
		{RunInfo{Attempt: 2, MaxAttempts: 3}, errDown, OutcomeRetried},
		{RunInfo{Attempt: 3, MaxAttempts: 3}, errDown, OutcomeDead},
		{RunInfo{Attempt: 3, MaxAttempts: 3}, Snooze(time.Hour), OutcomeSnoozed},
		{RunInfo{}, RetryAfter(time.Hour, errDown), OutcomeRetriedAfter},
		{RunInfo{}, fmt.Errorf("mail: %w", Discard(errDown)), OutcomeDiscarded},
		{RunInfo{}, ErrStopping, OutcomeReleased},
	} {
		run := &Run{RunInfo: c.run}
		if got := run.Outcome(c.err); got != c.want {
			t.Errorf("attempt %d of %d ends with %v as %q, want %q", c.run.Attempt, c.run.MaxAttempts, c.err, got, c.want)
		}
	}
	if err := new(Run).DoneTx(t.Context(), nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("the error of DoneTx is %v", err)
	}
}

// TestOnStuckDecides how the run of a stuck handler ends, and the failure says in any case that it was stuck.
func TestOnStuckDecides(t *testing.T) {
	t.Parallel()
	stuck := &outcome.StuckError{After: time.Second, Cause: ErrTimeout, Stack: "the stack"}
	r := &run.Run{Env: &run.Env{Queue: "q"}, ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}, Policy: control.Compile(backoff.Constant(0))}}
	for name, c := range map[string]struct {
		decide func(RunInfo, error) error
		act    outcome.Act
		text   string
	}{
		"nothing set":     {nil, outcome.ActNone, "handler is stuck"},
		"nil":             {func(RunInfo, error) error { return nil }, outcome.ActNone, "handler is stuck"},
		"Discard":         {func(_ RunInfo, err error) error { return Discard(err) }, outcome.ActDiscard, "handler is stuck"},
		"another error":   {func(RunInfo, error) error { return RetryAfter(time.Hour, errors.New("later")) }, outcome.ActRetryAfter, ": later"},
		"a panic":         {func(RunInfo, error) error { panic("oops") }, outcome.ActNone, "panic: oops"},
		"the run's queue": {func(info RunInfo, _ error) error { return errors.New(info.Queue) }, outcome.ActNone, ": q"},
	} {
		f := Config{OnStuck: c.decide}.stuckFailure(r, stuck)
		if !errors.Is(f.Err, ErrStuck) || !f.Is(ErrTimeout) || f.Act != c.act || !strings.Contains(f.Text, c.text) || f.Stack.V == "" {
			t.Errorf("%s: the failure is %+v", name, f)
		}
	}
}
