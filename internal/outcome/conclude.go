package outcome

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// ClaimResult is a claim and its policy. Its methods compute the settlement of the
// claim from the handler's failure, if any, and the policy.
type ClaimResult struct {
	Claim          *store.Claim
	Policy         *control.CompiledPolicy
	WorkerID       string
	Answered       time.Time // when the claim had been made: the database's clock shows at least Claim.Now plus the time since then
	LostTo         string    // the worker that lost the last attempt, if a change of the task has recorded the loss
	LostIn         string    // the step in which the previous run was lost, if known
	jitterFraction float64   // the drawn part of the jitter, above 0 and up to 1; 0 unless middleware has asked for the outcome
}

// MaxAttempts returns how many attempts the task has in all; 0 is no limit.
func (x ClaimResult) MaxAttempts() int {
	if x.Claim.MaxAttempts > 0 {
		return x.Claim.MaxAttempts
	}
	return x.Policy.Policy.MaxAttempts()
}

// IsLast reports whether no attempt is left after this one.
func (x ClaimResult) IsLast() bool {
	most := x.MaxAttempts()
	return most > 0 && x.Claim.Attempts == most
}

// DrawJitter draws the jitter of the next wait, unless it has been drawn. Middleware that asks for the
// outcome then gets the outcome with which the run ends.
func (x *ClaimResult) DrawJitter() {
	if x.jitterFraction == 0 {
		x.jitterFraction = 1 - rand.Float64()
	}
}

// settlement returns the part that all settlements of the claim have in common.
func (x ClaimResult) settlement() store.Settlement {
	c := x.Claim
	e := store.Settlement{ForgetRecords: c.Fence > 1, Member: store.HasMark(c.Metadata, store.MemberMark), Waiter: store.HasMark(c.Metadata, store.WaiterMark)}
	e.TaskID, e.Fence = c.ID, c.Fence
	if c.Previous.Valid {
		e.Records = append(e.Records, store.Record{
			Key: store.Key{TaskID: c.ID, Fence: c.Fence - 1}, Attempt: c.From.Attempts, Outcome: statements.OutcomeLost, Worker: c.Previous.V,
			Error: store.WhyLost(x.LostIn),
		})
	}
	return e
}

// refund is the AttemptsDelta of a settlement whose attempt does not count.
func (x ClaimResult) refund() int {
	if x.Claim.Exhausted {
		return 0
	}
	return -1
}

// Conclude returns the settlement of the claim after the handler succeeded, or failed with f.
func (x ClaimResult) Conclude(f *Failure, took time.Duration) store.Settlement {
	e := x.settlement()
	if f == nil {
		e.State = statements.StateDone
		return e
	}
	n := x.after(f)
	e.State, e.AttemptsDelta, e.Wait = n.state, n.attemptsDelta, n.wait.Microseconds()
	if !n.counts {
		return e
	}
	e.Error = store.NotNull(f.Text)
	recorded := statements.OutcomeRetried
	if n.state == statements.StateDead {
		recorded = statements.OutcomeDead
	}
	e.Records = append(e.Records, store.Record{
		Key: e.Key, Attempt: x.Claim.Attempts, Outcome: recorded, Worker: x.WorkerID,
		Duration: took.Microseconds(), Error: e.Error.V, Stack: f.Stack,
	})
	return e
}

// Outcome returns the outcome of a run whose handler succeeded, or failed with f, if Conclude settles it.
func (x ClaimResult) Outcome(f *Failure) Outcome {
	if f == nil {
		return Done
	}
	n := x.after(f)
	return outcomeOf(n.state, n.counts, f)
}

// next says how a task continues after a failure.
type next struct {
	state         string
	attemptsDelta int
	wait          time.Duration // from the end of the run to the task's anchor
	counts        bool          // as an attempt that failed
}

// after returns how the task continues after its handler failed with f.
func (x ClaimResult) after(f *Failure) next {
	switch {
	case f.Act == ActSnooze:
		return next{state: statements.StateSnoozed, attemptsDelta: x.refund(), wait: f.Wait}
	case f.Act == ActRepeat: // as a new task, but for its records and its fence
		return next{state: statements.StateSnoozed, attemptsDelta: -x.Claim.Attempts, wait: f.Wait}
	case f.Is(ErrStopping) && (f.Act == ActNone || f.Act == ActDiscard && f.Cancellation):
		// The task is not to blame: it is due again immediately. An outcome that the
		// handler asked for still applies, such as the wait of a RetryAfter, but not a
		// Discard of the cancellation itself.
		return next{state: statements.StateSnoozed, attemptsDelta: x.refund()}
	}
	// The jitter is drawn once, here, and moves the anchor. The delay is added by the
	// statements that decide whether the task is due.
	delay, jitter := x.Policy.Policy.Wait(int64(x.Claim.Attempts))
	switch {
	case x.jitterFraction > 0:
		jitter = time.Duration(x.jitterFraction * float64(jitter))
	case jitter > 0:
		jitter = rand.N(jitter)
	}
	n, whole := next{state: statements.StateOpen, wait: jitter, counts: true}, delay+jitter
	if f.Act == ActRetryAfter {
		n.state, n.wait, whole = statements.StateSnoozed, f.Wait, f.Wait
	}
	if f.Act == ActDiscard || x.exhausted(whole) {
		n.state, n.wait = statements.StateDead, 0
	}
	return n
}

// Of returns the outcome of a run whose claim ends with e. f is the failure of the
// handler, or nil if the handler succeeded or did not begin.
func Of(e *store.Settlement, f *Failure) Outcome { return outcomeOf(e.State, e.Error.Valid, f) }

// outcomeOf returns the outcome of a run after which the task has a state. counts says that it is a failed attempt.
func outcomeOf(state string, counts bool, f *Failure) Outcome {
	switch state {
	case statements.StateDone:
		return Done
	case statements.StateCancelled:
		return Expired
	case statements.StateDead:
		if f != nil && f.Act == ActDiscard {
			return Discarded
		}
		return Dead
	}
	switch {
	case f == nil:
		return Released
	case f.Act == ActSnooze:
		return Snoozed
	case f.Act == ActRepeat:
		return Repeated
	case !counts:
		return Released
	case f.Act == ActRetryAfter:
		return RetriedAfter
	}
	return Retried
}

// ByHand returns the outcome of an attempt that no worker has claimed, if its handler succeeds, or
// fails with f. The task has most attempts in all; 0 is no limit.
func ByHand(attempt, most int, f *Failure) Outcome {
	if f == nil {
		return Done
	}
	c := &store.Claim{}
	c.Attempts, c.MaxAttempts = attempt, most
	return ClaimResult{Claim: c, Policy: control.Compile(backoff.New(sqlgen.Number{}, nil))}.Outcome(f)
}

// exhausted reports whether no attempt is left after a wait of next.
func (x ClaimResult) exhausted(next time.Duration) bool {
	if most := x.MaxAttempts(); most > 0 && x.Claim.Attempts >= most {
		return true
	}
	elapsed := store.Duration(x.Claim.Now-x.Claim.First.V) + time.Since(x.Answered)
	return x.Policy.Policy.MaxElapsed() > 0 && elapsed+next > x.Policy.Policy.MaxElapsed()
}

// AttemptsExhausted returns the settlement of a task that has no attempt left. Its
// last attempt was lost, or the limit is lower now than when that attempt failed. After a
// failure the task keeps its last error, and the recorded attempts name the limit.
func (x ClaimResult) AttemptsExhausted(most int) store.Settlement {
	e := x.settlement()
	e.State, e.AttemptsDelta = statements.StateDead, x.refund()
	if worker := cmp.Or(x.Claim.Previous.V, x.LostTo); worker != "" {
		e.Error = store.NotNull(fmt.Sprintf("the lease of attempt %d of %d ended: its worker %q vanished%s", x.Claim.From.Attempts, most, worker, store.InStep(x.LostIn)))
		return e
	}
	e.Records = append(e.Records, store.Record{
		Key: e.Key, Attempt: x.Claim.From.Attempts, Outcome: statements.OutcomeDead, Worker: x.WorkerID,
		Error: fmt.Sprintf("%d attempts have failed, and %s allows %d now", x.Claim.From.Attempts, x.LimitText(), most),
	})
	return e
}

// LimitText names the limit on attempts of the task.
func (x ClaimResult) LimitText() string {
	switch {
	case x.Claim.MaxAttempts > 0:
		return "the task's MaxAttempts"
	case x.Policy.LimitSetFor() != "":
		return "the policy override for " + x.Policy.LimitSetFor()
	case x.Claim.From.Policy != "":
		return "the task's per-task policy"
	}
	return "the policy of its kind"
}

// IsExpired reports whether the claim began later than the policy, or the task's own time, allows a first attempt.
func (x ClaimResult) IsExpired() bool {
	return x.isLate() || store.HasExpired(x.Claim.Metadata, x.Claim.From, x.Claim.Now) || x.lostLate()
}

// lostLate reports whether all earlier claims were lost, and the first of them began after the task's own time: none of
// them ran a handler. A fence above the number of attempts shows a claim that ended in another way, such as a snooze.
func (x ClaimResult) lostLate() bool {
	c := x.Claim
	if !c.Previous.Valid || c.Fence != int64(c.Attempts) || len(c.Metadata) == 0 {
		return false
	}
	at := store.ReadExpiry(c.Metadata)
	return !at.IsZero() && c.First.V > at.UnixMicro()
}

// isLate reports whether the claim began later than the policy allows a first attempt.
func (x ClaimResult) isLate() bool {
	c := x.Claim
	within := x.Policy.StartWithin(c.From)
	return within > 0 && store.Duration(c.Now-c.Anchor) > within
}

// Expire returns the settlement of an expired task, whose handler does not run.
func (x ClaimResult) Expire() store.Settlement {
	e := x.settlement()
	e.State, e.AttemptsDelta = statements.StateCancelled, x.refund()
	within := x.Policy.StartWithin(x.Claim.From)
	if !x.isLate() {
		within = 0
	}
	e.Error = store.NotNull(WhyExpired(within))
	return e
}

// WhyExpired returns the error of a task that has not started within a time, or by a time of its own if within is 0.
func WhyExpired(within time.Duration) string {
	if within == 0 {
		return "expired: no attempt began by the task's ExpireAt"
	}
	return fmt.Sprintf("expired: no attempt began within %v of the due time", within)
}

// WhyDead returns why the task is dead. f is the failure of its handler, or nil if the handler did
// not run.
func (x ClaimResult) WhyDead(f *Failure) string {
	most := x.MaxAttempts()
	switch {
	case f == nil && x.Claim.Exhausted:
		return "its last attempt was lost"
	case f == nil:
		return "its fencing token (column fence) has the highest possible value"
	case f.Act == ActDiscard:
		return "its handler discarded it"
	case most > 0 && x.Claim.Attempts >= most:
		return fmt.Sprintf("%s allows %d attempts", x.LimitText(), most)
	}
	return fmt.Sprintf("its policy allows %v from the first attempt to the last", x.Policy.Policy.MaxElapsed())
}

// FencesExhausted returns the settlement of a task whose fence was edited to the highest number. All further
// claims of the task would have the same fence.
func (x ClaimResult) FencesExhausted() store.Settlement {
	e := x.settlement()
	e.State, e.AttemptsDelta = statements.StateDead, x.refund()
	e.Error = store.NotNull(fmt.Sprintf("the fencing token (column fence) is %d, the highest possible value: no claim of this task can have a higher one", x.Claim.Fence))
	return e
}

// Release returns the settlement of a claim whose handler never started. It leaves
// the row as the claim found it, except for the fence. In a sequence the task becomes snoozed, since its
// anchor may become later by some milliseconds: it keeps the place that the claim has given it. A task
// whose last attempt was lost becomes dead: the next claim would not know of the loss.
func (x ClaimResult) Release() store.Settlement {
	if x.Claim.Exhausted && x.Claim.Previous.Valid {
		if most := x.MaxAttempts(); most > 0 {
			return x.AttemptsExhausted(most)
		}
	}
	e := x.settlement()
	e.State, e.AttemptsDelta = x.Claim.From.State, x.refund()
	if x.Claim.From.Attempts == 0 && store.Ordered(x.Claim.Limits) {
		e.State = statements.StateSnoozed
	}
	e.Wait = x.Claim.Anchor - x.Claim.Now - time.Since(x.Answered).Microseconds()
	return e
}
