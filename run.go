package falldue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// run is one execution of a task: a claim, its handler, and how it ends.
type run struct {
	worker  *worker
	poller  *poller
	claim   *claim
	rule    *rule
	handler *handler
	claimed time.Time // when the claim was sent; all leases count from there

	end    settlement // how it ends, once the handler has returned
	giveUp time.Time  // when to try no longer to settle it; zero while the database did not refuse that

	mu       sync.Mutex
	until    time.Time // end of the lease, by the monotonic clock
	cancel   context.CancelCauseFunc
	lost     bool
	doubtful bool // DoneTx was called
	answer   any
}

func (r *run) meta() TaskMeta {
	c := r.claim
	return TaskMeta{
		ID: c.id, Kind: c.was.kind, Queue: r.poller.queue, Attempt: c.attempts, MaxAttempts: r.maxAttempts(),
		Fence: c.fence, Priority: c.was.priority, CreatedAt: moment(c.created),
	}
}

func (r *run) maxAttempts() int {
	if r.claim.maxAttempts > 0 {
		return r.claim.maxAttempts
	}
	return r.rule.policy.MaxAttempts()
}

func (r *run) setAnswer(answer string) {
	r.mu.Lock()
	r.answer = answer
	r.mu.Unlock()
}

// lose notes that the lease is gone and ends the handler's context.
func (r *run) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doubtful || r.lost { // settled by the handler itself, or known
		return
	}
	r.lost = true
	if r.cancel != nil {
		r.cancel(ErrLeaseLost)
	}
}

// execute runs the handler and returns how the claim ends, or false when it is
// not ours to end.
func (r *run) execute(ctx context.Context) (settlement, bool) {
	if most := r.maxAttempts(); most > 0 && r.claim.attempts > most {
		return r.worn(most), true
	}
	if r.claim.fence == math.MaxInt64 {
		return r.numberless(), true
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if d := r.handler.kind.Timeout; d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, d, ErrTimeout)
		defer stop()
	}
	r.mu.Lock()
	r.cancel = cancel
	// A process that stood still may come here before it learns that it did.
	lost := r.lost || !time.Now().Before(r.until)
	r.mu.Unlock()
	if lost {
		return settlement{}, false
	}
	started := time.Now()
	err := r.call(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return r.finish(err, time.Since(started))
}

// errGoexit is the error of a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit")

// finish returns how the claim ends after the handler ended with err, or false
// when it is not ours to end.
func (r *run) finish(err error, took time.Duration) (settlement, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost {
		return settlement{}, false
	}
	return r.conclude(err, took), true
}

// call runs the handler and turns its panic into an error.
func (r *run) call(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return r.handler.fn(ctx, r)
}

// conclude says how the claim ends after the handler returned err.
func (r *run) conclude(err error, took time.Duration) settlement {
	e := r.settlement()
	if err == nil {
		e.to, e.answer = statements.StateDone, r.answer
		return e
	}
	var v *verdict
	isVerdict := errors.As(err, &v)
	switch {
	case isVerdict && v.act == actSnooze:
		e.to, e.more, e.wait = statements.StateSnoozed, -1, v.wait
		return e
	case errors.Is(err, ErrStopping):
		// Not the task's fault: it runs again, here or elsewhere, at once.
		e.to, e.more = statements.StateSnoozed, -1
		return e
	}
	e.failure = clean(err.Error())
	entry := record{fence: r.claim.fence, attempt: r.claim.attempts, outcome: outcomeRetried, worker: r.worker.id, duration: took, err: e.failure}
	var p *PanicError
	if errors.As(err, &p) {
		entry.stack = clean(p.Stack)
	}
	// The wait is drawn once, here, and moves the anchor; the delay is added by
	// whoever looks whether the task is due.
	delay, jitter := r.rule.policy.Wait(int64(r.claim.attempts))
	e.to = statements.StateOpen
	if jitter > 0 {
		e.wait = rand.N(jitter)
	}
	next := delay + e.wait
	if isVerdict && v.act == actRetryAfter {
		e.to, e.wait, next = statements.StateSnoozed, v.wait, v.wait
	}
	if isVerdict && v.act == actDiscard || r.exhausted(next) {
		e.to, e.wait, entry.outcome = statements.StateDead, 0, outcomeDead
	}
	e.records = append(e.records, entry)
	return e
}

// exhausted tells whether the policy allows no further attempt after a wait.
func (r *run) exhausted(next time.Duration) bool {
	if most := r.maxAttempts(); most > 0 && r.claim.attempts >= most {
		return true
	}
	elapsed := micros(r.claim.now-r.claim.first) + time.Since(r.claimed)
	return r.rule.policy.MaxElapsed() > 0 && elapsed+next > r.rule.policy.MaxElapsed()
}

// worn ends a task that has no attempt left: its last one was lost with its
// worker, or the limit is lower now than when it failed.
func (r *run) worn(most int) settlement {
	e := r.settlement()
	e.to, e.more = statements.StateDead, -1
	e.failure = fmt.Sprintf("the lease of attempt %d of %d ran out: its worker %q vanished", r.claim.attempts-1, most, r.claim.previous)
	if r.claim.previous == "" {
		e.failure = fmt.Sprintf("%d attempts have failed, and %d are allowed now", r.claim.attempts-1, most)
	}
	return e
}

// numberless ends a task whose fence somebody set to the highest number: its
// claims could no longer be told apart.
func (r *run) numberless() settlement {
	e := r.settlement()
	e.to, e.more = statements.StateDead, -1
	e.failure = fmt.Sprintf("the fence is %d, the highest that there is: no claim of this task can have a higher one", r.claim.fence)
	return e
}

// release gives back a claim whose handler never started: the row is as the
// claim found it, but for its fence.
func (r *run) release() settlement {
	e := r.settlement()
	e.to, e.more, e.wait = r.claim.was.state, -1, micros(r.claim.anchor-r.claim.now)-time.Since(r.claimed)
	return e
}

// settlement is the common part of every end.
func (r *run) settlement() settlement {
	c := r.claim
	e := settlement{id: c.id, fence: c.fence, doubtful: r.doubtful, forget: c.fence > 1}
	if c.previous != "" {
		e.records = append(e.records, record{
			fence: c.fence - 1, attempt: c.attempts - 1, outcome: outcomeLost, worker: c.previous,
			err: "the lease ran out: the worker vanished",
		})
	}
	return e
}

func (r *run) doneTx(ctx context.Context, tx Tx) error {
	if tx == nil {
		return invalid("the transaction is nil")
	}
	r.mu.Lock()
	if r.lost {
		r.mu.Unlock()
		return ErrLeaseLost
	}
	r.doubtful = true // from here on, until the handler returns, it may be settled
	e := r.settlement()
	e.to, e.answer = statements.StateDone, r.answer
	r.mu.Unlock()
	mine, err := r.worker.q.store.settleTx(ctx, tx, r.worker.id, e)
	if err != nil {
		return fmt.Errorf("settle task %d: %w", e.id, err)
	}
	if !mine {
		return ErrLeaseLost
	}
	return nil
}

// maxErrorText bounds what is kept of an error or a stack.
const maxErrorText = 16 << 10

// clean makes text storable on every engine: valid UTF-8, no NUL, not endless.
func clean(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
