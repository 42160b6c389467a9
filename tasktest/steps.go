package tasktest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/steplog"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/steps"
)

// NextAttempt returns a task from [NewTask] or [NewTaskOf] as its next attempt: Attempt and Fence are one higher, and
// the steps that earlier attempts recorded (package steps) stay. The attempt has no result, and has not called DoneTx.
func NextAttempt[A any](t falldue.Task[A]) falldue.Task[A] {
	t.Attempt, t.Fence = t.Attempt+1, t.Fence+1
	if c, ok := hooks.Of[interface{ Calls() hooks.TaskCalls }](&t).Calls().(calls); ok {
		c.r.nextAttempt()
	}
	return t
}

// Steps returns the steps that the handler has recorded, in order.
func (r *Record) Steps() []steps.Step {
	rows, _ := r.recorded.Steps(context.Background(), 1)
	list := make([]steps.Step, len(rows))
	for i, s := range rows {
		list[i] = steps.Step{Number: s.N, Name: s.Name, Done: s.Result.Valid, Fence: s.Fence}
		if s.Result.Valid {
			list[i].Result = json.RawMessage(s.Result.V)
		}
		if s.Cursor.Valid {
			list[i].Cursor = json.RawMessage(s.Cursor.V)
		}
	}
	return list
}

// Stop makes the next step, or the next [steps.Cursor.Save], return [falldue.ErrStopping], as if the worker had begun to
// stop.
func (r *Record) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
}

func (r *Record) nextAttempt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts, r.steps, r.stopping, r.ended = r.attempts+1, nil, false, ended{}
}

// Steps returns the steps of the task in this attempt.
func (c calls) Steps() *steplog.Steps {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps == nil {
		r.steps = steplog.New(steplog.Config{
			Claim: store.Key{TaskID: 1, Fence: 1 + r.attempts}, Max: r.maxPayload, Table: &r.recorded,
			Stopping: func() bool { return r.is(&r.stopping) },
			Gone:     func() bool { return r.is(&r.lost) || r.is(&r.done) },
			Ends:     func() bool { return r.is(&r.done) },
			Encode:   func(_ string, json []byte) (string, error) { return string(json), nil },
			Decode:   func(_ string, stored []byte) ([]byte, error) { return stored, nil },
		})
	}
	return r.steps
}

// is returns a field.
func (r *Record) is(field *bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *field
}

// stepTable has the steps of a task. What is written in a transaction is written: a transaction of a
// test may be no real one.
type stepTable struct {
	mu   sync.Mutex
	rows []store.StoredStep
}

func (s *stepTable) Steps(context.Context, int64) ([]store.StoredStep, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows), nil
}

func (s *stepTable) PutStep(_ context.Context, _ store.Tx, _ string, step *store.StepRow) (mine bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.rows) < step.N {
		s.rows = append(s.rows, store.StoredStep{})
	}
	s.rows[step.N-1].StepRow = *step
	return true, nil
}

// Classify is not called, since no call fails.
func (*stepTable) Classify(error) dialect.Class { return dialect.Other }
