package falldue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// execution is a claim and the policy that holds for it. Its methods say how the
// claim ends, as a settlement: by what the handler returned and by what the policy
// allows.
type execution struct {
	claim    *store.Claim
	rule     *rule
	workerID string
	claimed  time.Time // when the claim was sent; leases and elapsed time count from there
}

// maxAttempts is how often the task may run, 0 for any number of times.
func (x execution) maxAttempts() int {
	if x.claim.MaxAttempts > 0 {
		return x.claim.MaxAttempts
	}
	return x.rule.policy.MaxAttempts()
}

// settlement is the common part of every end.
func (x execution) settlement() store.Settlement {
	c := x.claim
	e := store.Settlement{ForgetRecords: c.Fence > 1}
	e.TaskID, e.Fence = c.ID, c.Fence
	if c.Previous != "" {
		e.Records = append(e.Records, store.Record{
			Key: store.Key{TaskID: c.ID, Fence: c.Fence - 1}, Attempt: c.Attempts - 1, Outcome: statements.OutcomeLost, Worker: c.Previous,
			Error: "the lease ran out: the worker vanished",
		})
	}
	return e
}

// conclude returns how the claim ends after the handler returned err.
func (x execution) conclude(err error, took time.Duration) store.Settlement {
	e := x.settlement()
	if err == nil {
		e.State = statements.StateDone
		return e
	}
	f := failureOf(err)
	switch {
	case f.act == actSnooze:
		e.State, e.AttemptsDelta, e.Wait = statements.StateSnoozed, -1, f.wait.Microseconds()
		return e
	case f.act == actNone && errors.Is(err, ErrStopping):
		// Not the task's fault: it runs again, here or elsewhere, at once. What the
		// handler asked for holds all the same: an API that wants an hour's rest gets
		// it from a deploy, too.
		e.State, e.AttemptsDelta = statements.StateSnoozed, -1
		return e
	}
	e.Error = notNull(clean(err.Error()))
	record := store.Record{
		Key: e.Key, Attempt: x.claim.Attempts, Outcome: statements.OutcomeRetried, Worker: x.workerID,
		Duration: took.Microseconds(), Error: e.Error.V, Stack: f.stack,
	}
	// The jitter is drawn once, here, and moves the anchor; the delay is added by
	// whoever looks whether the task is due.
	delay, jitter := x.rule.policy.Wait(int64(x.claim.Attempts))
	if jitter > 0 {
		jitter = rand.N(jitter)
	}
	e.State, e.Wait = statements.StateOpen, jitter.Microseconds()
	next := delay + jitter
	if f.act == actRetryAfter {
		e.State, e.Wait, next = statements.StateSnoozed, f.wait.Microseconds(), f.wait
	}
	if f.act == actDiscard || x.exhausted(next) {
		e.State, e.Wait, record.Outcome = statements.StateDead, 0, statements.OutcomeDead
	}
	e.Records = append(e.Records, record)
	return e
}

// exhausted reports whether the policy allows no further attempt after a wait.
func (x execution) exhausted(next time.Duration) bool {
	if most := x.maxAttempts(); most > 0 && x.claim.Attempts >= most {
		return true
	}
	elapsed := store.Duration(x.claim.Now-x.claim.First) + time.Since(x.claimed)
	return x.rule.policy.MaxElapsed() > 0 && elapsed+next > x.rule.policy.MaxElapsed()
}

// attemptsExhausted ends a task that has no attempt left: its last one was lost
// with its worker, or the limit is lower now than when it failed.
func (x execution) attemptsExhausted(most int) store.Settlement {
	e := x.settlement()
	e.State, e.AttemptsDelta = statements.StateDead, -1
	e.Error = notNull(fmt.Sprintf("the lease of attempt %d of %d ran out: its worker %q vanished", x.claim.Attempts-1, most, x.claim.Previous))
	if x.claim.Previous == "" {
		e.Error = notNull(fmt.Sprintf("%d attempts have failed, and %d are allowed now", x.claim.Attempts-1, most))
	}
	return e
}

// fencesExhausted ends a task whose fence somebody set to the highest number: its
// claims could no longer be told apart.
func (x execution) fencesExhausted() store.Settlement {
	e := x.settlement()
	e.State, e.AttemptsDelta = statements.StateDead, -1
	e.Error = notNull(fmt.Sprintf("the fence is %d, the highest that there is: no claim of this task can have a higher one", x.claim.Fence))
	return e
}

// release gives back a claim whose handler never started: the row is as the
// claim found it, but for its fence.
func (x execution) release() store.Settlement {
	e := x.settlement()
	e.State, e.AttemptsDelta = x.claim.Was.State, -1
	e.Wait = x.claim.Anchor - x.claim.Now - time.Since(x.claimed).Microseconds()
	return e
}

// withCause adds to a handler's error why its context ended.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// maxErrorText bounds what is kept of an error or a stack.
const maxErrorText = 16 << 10

// clean makes text storable on every engine: valid UTF-8, no NUL, limited in
// length.
func clean(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "…" // which is a copy: the rest can be freed
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func notNull(text string) sql.Null[string] { return sql.Null[string]{V: text, Valid: true} }
