package tasktest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
)

// NewTask makes a task by hand, to call a handler without a database. Its methods work,
// and the record says what the handler did with them. The task is attempt 1, with the
// id 1; set its fields to have others.
func NewTask[A any](args A) (falldue.Task[A], *Record) {
	task := falldue.Task[A]{
		TaskMeta: falldue.TaskMeta{ID: 1, Kind: "test", Queue: falldue.DefaultQueue, Attempt: 1, Fence: 1, CreatedAt: time.Now()},
		Args:     args,
	}
	r := &Record{}
	hooks.SetCalls(&task, calls{r})
	return task, r
}

// Record says what a handler did with a task that [NewTask] has made. It is safe for
// concurrent use.
type Record struct {
	mu     sync.Mutex
	lost   bool
	done   bool
	result json.RawMessage

	progress []Progress
}

// Progress is a report of a handler.
type Progress struct {
	Fraction float64
	Message  string
}

// Progress returns what the handler has reported, in that order.
func (r *Record) Progress() []Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.progress)
}

// LoseLease makes DoneTx fail with [falldue.ErrLeaseLost] from now on, as if another
// worker had the task.
func (r *Record) LoseLease() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = true
}

// DoneTx reports whether the handler called DoneTx, with success.
func (r *Record) DoneTx() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// Result returns the result that the handler set, as JSON, or nil.
func (r *Record) Result() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// calls is what the methods of the task call.
type calls struct{ r *Record }

func (c calls) DoneTx(_ context.Context, tx falldue.Tx) error {
	if tx == nil {
		return fmt.Errorf("%w: the transaction is nil", falldue.ErrInvalid)
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.r.lost {
		return falldue.ErrLeaseLost
	}
	c.r.done = true
	return nil
}

func (c calls) SetResult(text []byte) error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.result = text
	return nil
}

// MaxPayload is the default of Config.MaxPayload.
func (calls) MaxPayload() int { return 1 << 20 }

func (c calls) Progress(fraction float64, message string) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.progress = append(c.r.progress, Progress{fraction, message})
}

// KeepsDone lets SetResult have a result.
func (calls) KeepsDone() bool { return true }

// Outcome is what becomes of a task by the error that its handler returns.
type Outcome string

// The outcomes.
const (
	// Done: the handler returned nil.
	Done Outcome = "done"
	// Retried: the task runs again under its policy, unless no attempt is left.
	Retried Outcome = "retried"
	// RetriedAfter: the handler returned [falldue.RetryAfter].
	RetriedAfter Outcome = "retried after"
	// Snoozed: the handler returned [falldue.Snooze].
	Snoozed Outcome = "snoozed"
	// Discarded: the handler returned [falldue.Discard].
	Discarded Outcome = "discarded"
)

// Asked returns what a handler asks for by the error that it returns, and for Snoozed and
// RetriedAfter how long the task is to wait.
func Asked(err error) (Outcome, time.Duration) {
	if err == nil {
		return Done, 0
	}
	v := hooks.VerdictOf(err)
	outcome, ok := map[string]Outcome{"discard": Discarded, "snooze": Snoozed, "retry after": RetriedAfter}[v.Asked]
	if !ok {
		outcome = Retried
	}
	return outcome, v.Wait
}
