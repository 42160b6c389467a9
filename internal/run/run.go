// Package run runs the handlers of claimed tasks, and records how they end.
package run

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/steplog"
	"github.com/falldue/falldue/internal/store"
)

// Run is one execution of a task: a claim, its handler, and its settlement.
type Run struct {
	*Env
	outcome.ClaimResult
	handler *Handler
	Lease   lease.Lease
	queued  time.Time // when the run began to wait for a handler
	watch   *watch    // nil if the handler is never given up

	began time.Duration     // from the claim to the begin of the handler; 0 before
	Took  time.Duration     // how long the handler ran
	due   int64             // when the task fell due, in microseconds since 1970; set by Info
	about map[string]string // the task's metadata; set by Info

	mu     sync.Mutex
	result sql.Null[string] // the result that the handler set, as JSON
	steps  *steplog.Steps   // nil unless the handler uses steps

	progress runProgress

	end     store.Settlement // set when the handler has returned
	giveUp  time.Time        // when the settler gives up; zero unless the database refuses the settlement
	refused error            // why the database refuses the settlement
	plain   bool             // the texts are reduced to ASCII, since the session cannot encode others
	Failure *outcome.Failure // why the run has failed; nil after success
	unsure  bool             // a statement that settles the run has failed, and may have taken effect
}

// runProgress is the progress that a run has reported.
type runProgress struct {
	mu   sync.Mutex
	last *store.Progress // nil once it is written
	any  bool            // there has been a report
}

// Env is shared by all runs of a queue.
type Env struct {
	Queue     string
	MaxResult int
	Encode    Encode
	Decode    Decode
	Overrides *control.Overrides // nil if there are none
	Observer  Observer
	Timeouts  timeouts // nil if nothing watches them
	Stuck     *Stuck   // nil if no handler is given up
	Reports   *ProgressWriter
	Table     txTable
	StepTable steplog.Table
	Stop      context.Context // ends when the worker begins to stop
}

type (
	// Encode encodes the JSON of a column of a task of a kind, see falldue.Place.
	Encode func(kind, column string, id int64, json []byte) (string, error)
	// Decode decodes what Encode has encoded.
	Decode func(kind, column string, id int64, stored []byte) ([]byte, error)
)

// resultColumn is the column of results.
const resultColumn = "result"

// timeouts watches handlers that have a timeout.
type timeouts interface {
	// Limit notes that the handler of a run begins. Call returned when the handler has returned.
	Limit(r *Run, timeout time.Duration) (returned func())
}

// Limit notes that the handler begins and has a timeout. Call returned when the handler has returned.
func (r *Run) Limit(timeout time.Duration) (returned func()) {
	if r.Env == nil || r.Timeouts == nil { // as in a test
		return func() {}
	}
	overtime := r.Timeouts.Limit(r, timeout)
	if r.watch == nil {
		return overtime
	}
	late := r.watch.begin(timeout, outcome.ErrTimeout)
	return func() {
		late.Stop()
		overtime()
	}
}

// txTable settles a task inside the transaction of its handler, and lists the task's recorded attempts.
type txTable interface {
	Attempts(ctx context.Context, id int64) ([]store.Attempt, error)
	SettleTx(ctx context.Context, tx store.Tx, workerID string, e *store.Settlement) (mine bool, err error)
}

// policyOf returns the policy that is in effect now for the task in a lane. Overrides may have
// begun or ended since the claim.
func (r *Run) policyOf(at store.Lane) *control.CompiledPolicy {
	return r.Overrides.Current(r.Queue, at, r.Policy)
}

// Info describes a run. The public package has a type with the same fields, which documents
// them.
type Info struct {
	ID               int64
	Kind, Queue      string
	Attempt          int
	MaxAttempts      int
	Fence            int64
	Priority         int
	Key              string
	Metadata         map[string]string
	CreatedAt, DueAt time.Time
	ReadyAt          time.Time
	StartedAt        time.Time
	Worker           string
}

// Info describes the run. It is called by one goroutine at a time.
func (r *Run) Info() Info {
	c := r.Claim
	if r.due == 0 { // overrides may change r.Policy before the run ends
		r.about, r.due = store.ReadMetadata(c.Metadata), c.Anchor+r.Policy.DelayIn(c.From).Microseconds()
	}
	m := Info{
		ID: c.ID, Kind: c.From.Kind, Queue: r.Queue, Attempt: c.Attempts, MaxAttempts: r.MaxAttempts(),
		Fence: c.Fence, Priority: c.From.Priority, Key: c.From.Key, Metadata: r.about,
		CreatedAt: store.Time(c.Created.V), DueAt: store.Time(r.due), ReadyAt: store.Time(max(r.due, min(c.HeldUntil, c.Now))), Worker: r.WorkerID,
	}
	if r.began > 0 {
		m.StartedAt = store.Time(c.Now).Add(r.began)
	}
	return m
}

// Lag returns how late the handler began after the task had fallen due. delay is the policy's part of the task's wait.
func (r *Run) Lag(delay time.Duration) time.Duration {
	return max(store.Duration(r.Claim.Now-r.Claim.Anchor)-delay+r.began, 0)
}

// Began reports whether the handler of the task has begun.
func (r *Run) Began() bool { return r.began > 0 }

// KeepsDone reports whether the task stays in the table when it is done.
func (r *Run) KeepsDone() bool { return r.handler.keepsDone() }

// MaxPayload returns the largest size of a result.
func (r *Run) MaxPayload() int { return r.MaxResult }

// SetResult sets the result, as JSON.
func (r *Run) SetResult(json []byte) error {
	stored, err := r.Encode(r.Claim.From.Kind, resultColumn, r.Claim.ID, json)
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = store.NotNull(stored)
	return nil
}

func (r *Run) getResult() sql.Null[string] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// execute runs the handler and returns the settlement of the claim, or false if the
// claim no longer belongs to this worker. If the handler is given up, execute returns another run.
func (r *Run) execute(ctx context.Context, leases *lease.Set) (*Run, store.Settlement, bool) {
	if most := r.MaxAttempts(); most > 0 && r.Claim.Exhausted {
		if r.Claim.Previous.Valid {
			r.LostIn = r.Steps().CountLost(ctx)
		} else {
			r.LostTo, r.LostIn = r.recordedLoss(ctx)
		}
		return r, r.AttemptsExhausted(most), true
	}
	if r.Claim.Fence == math.MaxInt64 {
		return r, r.FencesExhausted(), true
	}
	if r.IsExpired() {
		return r, r.Expire(), true
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := time.Now()
	if !r.Lease.Begin(cancel, started) {
		return r, store.Settlement{}, false
	}
	r.began = max(started.Sub(r.Answered), 1)
	r.Observer.Started(r)
	r, f := r.Stuck.handle(ctx, r, leases)
	took := time.Since(started)
	if f == nil && r.Lease.LeftToDoneTx() {
		f = outcome.NotCommitted(context.Cause(ctx)) // the settler may still find the task ended
	}
	r.handler.Pace.Record(took)
	e, ours := r.Finish(f, took)
	return r, e, ours
}

// recordedLoss returns the worker that lost the task's last attempt, and the step in which it did so, if a change of the
// task has ended the lost claim.
func (r *Run) recordedLoss(ctx context.Context) (worker, step string) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	list, err := r.Table.Attempts(ctx, r.Claim.ID)
	if err != nil || len(list) == 0 {
		return "", ""
	}
	last := list[len(list)-1]
	if last.Outcome != statements.OutcomeLost || last.Attempt != r.Claim.From.Attempts {
		return "", ""
	}
	return last.Worker, r.stepOf(ctx, last.Fence)
}

// Finish returns the settlement of the claim after the handler succeeded, or failed with f, or
// false if the claim no longer belongs to this worker.
func (r *Run) Finish(f *outcome.Failure, took time.Duration) (store.Settlement, bool) {
	r.Took = took
	if r.Failure = f; f != nil { // the policy in effect now decides what comes next
		r.Policy = r.policyOf(r.Claim.From)
	}
	r.LostIn = r.stepOfLost()
	e := r.Conclude(f, took)
	if e.State == statements.StateDone {
		e.Result, e.RetainDone = r.getResult(), r.KeepsDone()
	}
	r.settleSteps(&e, f != nil && f.Act == outcome.ActRepeat)
	e.Progress, e.HasProgress = r.lastProgress()
	r.wrote(e.Progress)
	lost, maybeSettled := r.Lease.State()
	e.MaybeSettled = maybeSettled
	return e, !lost
}

// WouldEnd returns the outcome of the run if its handler succeeds, or fails with f.
func (r *Run) WouldEnd(f *outcome.Failure) outcome.Outcome {
	if lost, _ := r.Lease.State(); lost {
		return r.Lease.LostBy()
	}
	if f == nil {
		return outcome.Done
	}
	r.DrawJitter()
	x := r.ClaimResult
	x.Policy = r.policyOf(r.Claim.From)
	return x.Outcome(f)
}

// LostOutcome returns the outcome of a run that could not be settled because its claim is
// gone. While the lease lasts, no other worker can have claimed the task.
func (r *Run) LostOutcome() outcome.Outcome {
	lost, _ := r.Lease.State()
	switch {
	case lost:
		return r.Lease.LostBy()
	case r.Lease.SettledByHandler():
		return outcome.Done
	case !r.Lease.Holds(time.Now()):
		return outcome.Lost
	case r.unsure:
		return outcome.Of(&r.end, r.Failure)
	}
	return outcome.Cancelled
}

// endedByDoneTx records that the handler's DoneTx has ended the task, if the handler called it. The claim is gone,
// and while the lease lasts, no other worker can have claimed the task.
func (r *Run) endedByDoneTx() {
	if !r.Lease.SettledByHandler() {
		return
	}
	if r.Failure.IsUncommitted() {
		r.Failure = nil
	}
	r.end.State, r.end.Error, r.end.RetainDone = statements.StateDone, sql.Null[string]{}, r.KeepsDone()
}

// CauseOfDeath returns why the task is dead although its handler did not run, or "".
func (r *Run) CauseOfDeath() string {
	switch n := len(r.end.Records); {
	case r.Failure != nil || r.end.State != statements.StateDead:
		return ""
	case r.end.Error.Valid:
		return r.end.Error.V
	case n > 0:
		return r.end.Records[n-1].Error
	}
	return ""
}

// DoneTx settles the task as done inside the handler's transaction.
func (r *Run) DoneTx(ctx context.Context, tx store.Tx) error {
	if !r.Lease.Settling() { // after this call the task may be settled
		return outcome.ErrLeaseLost
	}
	defer r.Lease.SettlingEnded()
	r.LostIn = r.stepOfLost()
	e := r.Conclude(nil, 0)
	e.Result, e.RetainDone = r.getResult(), r.KeepsDone()
	r.settleSteps(&e, false)
	e.Progress, e.HasProgress = r.lastProgress() // stays with the run, since tx may be rolled back
	mine, err := r.Table.SettleTx(ctx, tx, r.WorkerID, &e)
	if err != nil {
		return fmt.Errorf("mark task %d done: %w", e.TaskID, err)
	}
	if !mine {
		return outcome.ErrLeaseLost
	}
	return nil
}

// StateAfter returns the state to which the settlement takes the task.
func (r *Run) StateAfter() string { return r.end.State }

// HandlerError returns the error that the handler returned, or nil.
func (r *Run) HandlerError() error {
	if r.Failure == nil {
		return nil
	}
	return r.Failure.Err
}

// leasesOf returns the leases of runs.
func leasesOf(runs []*Run) []*lease.Lease {
	leases := make([]*lease.Lease, len(runs))
	for i, r := range runs {
		leases[i] = &r.Lease
	}
	return leases
}

// byTask orders runs by the ids of their tasks, and runs of one task by fence.
func byTask(a, b *Run) int {
	return cmp.Or(cmp.Compare(a.Claim.ID, b.Claim.ID), cmp.Compare(a.Claim.Fence, b.Claim.Fence))
}
