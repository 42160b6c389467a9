package tasktest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/steplog"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// NewTask makes a task for calling a handler without a database. The task's methods work, and the Record contains the
// handler's calls of these methods. The task has the ID 1 and is attempt 1: set its fields to change both. Its
// arguments are args, encoded as JSON and decoded again as in a worker, so fields that JSON leaves out are lost. The
// task accepts a result, as in a kind that keeps done tasks. A task from [NewTaskOf] accepts a result only if its kind
// keeps done tasks. NewTask panics if args cannot be encoded as JSON, or cannot be decoded again.
func NewTask[A any](args A) (falldue.Task[A], *Record) {
	return newTask(falldue.RunInfo{Kind: "test", Queue: falldue.DefaultQueue}, args, &Record{maxPayload: defaultMaxPayload, keepsDone: true})
}

// NewTaskOf is like [NewTask] for a task of a kind, on a queue with the configuration cfg. SetResult then
// fails as it does on such a queue: if done tasks of the kind are deleted immediately (no DoneRetention and no MaxDone),
// or if the result exceeds Config.MaxPayload. The task has the kind's name, queue, priority and maximum number of
// attempts, and the key that [falldue.Kind.KeyedBy] makes of args.
func NewTaskOf[A any](kind falldue.Kind[A], args A, cfg falldue.Config) (falldue.Task[A], *Record) {
	own := kind.Config()
	policy := own.Policy
	if policy.IsZero() {
		policy = cfg.DefaultPolicy
	}
	params := kind.Params(args)
	return newTask(
		falldue.RunInfo{
			Kind: kind.Name(), Queue: own.Queue, Priority: own.Priority, MaxAttempts: policy.MaxAttempts(),
			Key: storable.Key(params.Options().Key),
		}, args,
		&Record{maxPayload: cmp.Or(cfg.MaxPayload, defaultMaxPayload), keepsDone: cmp.Or(own.DoneRetention, cfg.DoneRetention, time.Duration(max(own.MaxDone, cfg.MaxDone))) > 0},
	)
}

// newTask makes a task, at its first attempt.
func newTask[A any](info falldue.RunInfo, args A, r *Record) (falldue.Task[A], *Record) {
	read, err := stored(args)
	if err != nil {
		panic(fmt.Sprintf("tasktest: the arguments of a task of kind %q: %v", info.Kind, err))
	}
	info.ID, info.Attempt, info.Fence, info.CreatedAt = 1, 1, 1, time.Now()
	task := falldue.Task[A]{RunInfo: info, Args: read}
	hooks.Of[interface{ SetCalls(hooks.TaskCalls) }](&task).SetCalls(calls{r})
	return task, r
}

// defaultMaxPayload is the default of Config.MaxPayload.
const defaultMaxPayload = 1 << 20

// Record contains the calls that a handler made to the methods of a task from [NewTask] or [NewTaskOf]. It is safe for
// concurrent use.
type Record struct {
	maxPayload int
	keepsDone  bool

	mu       sync.Mutex
	lost     bool
	ended    // of the attempt that runs
	progress []Progress
	recorded stepTable
	steps    *steplog.Steps // of the attempt that runs
	attempts int64          // before that one
	stopping bool
}

// ended has what an attempt has set for its end.
type ended struct {
	done   bool
	in     store.Tx        // the transaction of the last DoneTx
	result json.RawMessage // of the last SetResult
	stored json.RawMessage // of the last SetResult before DoneTx
}

// Progress is a report of a handler, as it would be stored. Fraction is from 0 to 1, rounded to a millionth, and
// Message is cut after 16 KiB.
type Progress struct {
	Fraction float64
	Message  string
}

// Progress returns the reports of the handler, in order.
func (r *Record) Progress() []Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.progress)
}

// LoseLease makes DoneTx and steps fail with [falldue.ErrLeaseLost] from now on, as if another worker had claimed the
// task.
func (r *Record) LoseLease() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = true
}

// DoneTx reports whether the handler called DoneTx successfully. From then on, steps and a second DoneTx in the same
// transaction fail with [falldue.ErrLeaseLost], as in a worker. A DoneTx in another transaction succeeds, as in a worker
// after a rollback.
func (r *Record) DoneTx() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// Result returns the result that the handler set, as JSON, or nil. A result that the handler set after DoneTx would not
// be stored, and Result does not return it.
func (r *Record) Result() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return r.stored
	}
	return r.result
}

// calls is what the methods of the task call.
type calls struct{ r *Record }

func (c calls) DoneTx(_ context.Context, tx store.Tx) error {
	if tx == nil {
		return fmt.Errorf("%w: the transaction is nil", falldue.ErrInvalid)
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.r.lost || c.r.done && same(c.r.in, tx) {
		return falldue.ErrLeaseLost
	}
	c.r.done, c.r.in, c.r.stored = true, tx, c.r.result
	return nil
}

// same reports whether two transactions are equal. Transactions of types that cannot be compared never are.
func same(a, b store.Tx) bool { return reflect.ValueOf(a).Comparable() && a == b }

func (c calls) SetResult(text []byte) error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.result = text
	return nil
}

// MaxPayload returns the largest size of a result.
func (c calls) MaxPayload() int { return c.r.maxPayload }

func (c calls) Progress(fraction float64, message string) {
	p := run.NewProgress(fraction, message)
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.progress = append(c.r.progress, Progress{float64(p.Millionths) / 1e6, p.Message})
}

// KeepsDone reports whether SetResult may have a result.
func (c calls) KeepsDone() bool { return c.r.keepsDone }

// Asked returns the outcome that a handler's error asks for: [falldue.OutcomeDone], OutcomeRetried,
// OutcomeRetriedAfter, OutcomeSnoozed, OutcomeRepeated or OutcomeDiscarded. For OutcomeSnoozed, OutcomeRepeated and
// OutcomeRetriedAfter it also returns how long the task will wait. A worker makes a task dead instead of retrying it
// if its policy allows no further attempt.
func Asked(err error) (falldue.Outcome, time.Duration) {
	if err == nil {
		return falldue.OutcomeDone, 0
	}
	act, wait := outcome.ActOf(err)
	return falldue.Outcome(act.Outcome()), wait
}
