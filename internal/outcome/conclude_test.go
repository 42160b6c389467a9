package outcome

import (
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestVerdictsHoldAfterTheShutdownTimeout: if a handler returns an error because the
// worker stops, the attempt does not count. An outcome that the handler asks for applies.
func TestVerdictsHoldAfterTheShutdownTimeout(t *testing.T) {
	t.Parallel()
	x := ClaimResult{
		Claim: &store.Claim{Claimed: statements.Claimed{ID: 1, Fence: 1}, Attempts: 1}, Policy: control.Compile(backoff.Constant(time.Minute)), Answered: time.Now(),
	}
	stopped := []error{ErrStopping}
	for name, c := range map[string]struct {
		f     *Failure
		state string
		delta int
		wait  time.Duration
	}{
		"an error":                    {&Failure{Causes: stopped}, statements.StateSnoozed, -1, 0},
		"Snooze":                      {&Failure{Causes: stopped, Act: ActSnooze, Wait: time.Hour}, statements.StateSnoozed, -1, time.Hour},
		"Again":                       {&Failure{Causes: stopped, Act: ActRepeat, Wait: time.Hour}, statements.StateSnoozed, -1, time.Hour},
		"RetryAfter":                  {&Failure{Causes: stopped, Act: ActRetryAfter, Wait: time.Hour}, statements.StateSnoozed, 0, time.Hour},
		"Discard":                     {&Failure{Causes: stopped, Act: ActDiscard}, statements.StateDead, 0, 0},
		"Discard of the cancellation": {&Failure{Causes: stopped, Act: ActDiscard, Cancellation: true}, statements.StateSnoozed, -1, 0},
	} {
		e := x.Conclude(c.f, time.Second)
		if e.State != c.state || e.AttemptsDelta != c.delta || store.Duration(e.Wait) != c.wait {
			t.Errorf("%s: the task becomes %s with %d attempts more and waits %v; want %s, %d, %v", name, e.State, e.AttemptsDelta, store.Duration(e.Wait), c.state, c.delta, c.wait)
		}
	}
}

// TestReleaseKeepsThePlaceInASequence: a released task is as before its claim, except for a new task in a
// sequence. That task becomes snoozed, and keeps the place that the claim has given it.
func TestReleaseKeepsThePlaceInASequence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from   string
		failed int
		form   store.LimitForm
		want   string
	}{
		"a new one without a sequence": {statements.StateOpen, 0, store.Running, statements.StateOpen},
		"a new one in a sequence":      {statements.StateOpen, 0, store.Sequence, statements.StateSnoozed},
		"one that halts at deaths":     {statements.StateOpen, 0, store.HaltingSequence, statements.StateSnoozed},
		"one that has failed":          {statements.StateOpen, 1, store.Sequence, statements.StateOpen},
		"one that was snoozed":         {statements.StateSnoozed, 0, store.Running, statements.StateSnoozed},
	} {
		x := ClaimResult{Claim: &store.Claim{Attempts: c.failed + 1, Limits: []store.Limit{{Name: "l", Form: c.form, Most: 1}}}, Answered: time.Now()}
		x.Claim.From.State, x.Claim.From.Attempts = c.from, c.failed
		if e := x.Release(); e.State != c.want || e.AttemptsDelta != -1 {
			t.Errorf("%s becomes %s with %d attempts more; want %s, -1", name, e.State, e.AttemptsDelta, c.want)
		}
	}
}

// TestReleaseGoesBackToAnyAnchor: a released claim leaves the row as it was, even if a person has set
// the anchor to a moment further away than a duration can be.
func TestReleaseGoesBackToAnyAnchor(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for _, year := range []int{2029, 1800, 1733, 1500, 1, -140_000} {
		anchor := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		x := ClaimResult{Claim: &store.Claim{Claimed: statements.Claimed{ID: 1, Fence: 1, Anchor: anchor, Now: now}, Attempts: 1}, Answered: time.Now()}
		x.Claim.From.State = statements.StateOpen
		e := x.Release()
		if off := store.Duration(now + e.Wait - anchor); off > 0 || off < -time.Minute { // the time since the claim
			t.Errorf("year %d: the anchor moves by %v", year, off)
		}
		if e.State != statements.StateOpen || e.AttemptsDelta != -1 || store.Duration(e.Wait) >= 0 {
			t.Errorf("year %d: the task becomes %s with %d attempts more, and seems due in %v", year, e.State, e.AttemptsDelta, store.Duration(e.Wait))
		}
	}
}

// TestReleaseOfALostLastAttempt: a task whose last attempt was lost is dead although its worker stops before it
// would run. Its error names the loss. If no attempt was lost, the task waits as before the claim.
func TestReleaseOfALostLastAttempt(t *testing.T) {
	t.Parallel()
	x := ClaimResult{Claim: &store.Claim{Claimed: statements.Claimed{ID: 1, Fence: 5}, Attempts: 2, Exhausted: true}, Policy: control.Compile(backoff.Constant(time.Minute).WithMaxAttempts(2)), Answered: time.Now()}
	x.Claim.From.State, x.Claim.From.Attempts = statements.StateOpen, 2
	if e := x.Release(); e.State != statements.StateOpen || e.AttemptsDelta != 0 || len(e.Records) > 0 {
		t.Errorf("a task that has failed twice becomes %s with %d attempts more and %d records; want %s, 0, 0", e.State, e.AttemptsDelta, len(e.Records), statements.StateOpen)
	}
	x.Claim.Previous = store.NotNull("w")
	e := x.Release()
	if e.State != statements.StateDead || e.AttemptsDelta != 0 || len(e.Records) != 1 || e.Records[0].Outcome != statements.OutcomeLost {
		t.Errorf("a task whose second attempt was lost becomes %s with %d attempts more and the records %v; want %s, 0, and one of a lost attempt", e.State, e.AttemptsDelta, e.Records, statements.StateDead)
	}
	if want := `the lease of attempt 2 of 2 ended: its worker "w" vanished`; e.Error.V != want {
		t.Errorf("its error is %q; want %q", e.Error.V, want)
	}
}
