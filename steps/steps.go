package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/steplog"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

var (
	// ErrChanged means that the order or the names of a handler's steps differ from the steps that an earlier attempt of
	// the task has recorded. The error's text has both names: the handler's and the recorded one. No step has run again.
	ErrChanged = steplog.ErrChanged
	// ErrNotCommitted means that the function passed to [DoTx] returned nil, although the transaction in
	// which it recorded the step has not committed.
	ErrNotCommitted = errors.New("falldue: the transaction of a step did not commit")
)

// Do runs a step of a task: it calls fn, and records the result. In later attempts of the task, Do returns the recorded
// result without calling fn. If fn returns an error, the step has not succeeded. It runs again in the next attempt, or
// when the handler calls Do with the same name again.
//
// fn runs again if its worker dies or loses the lease before the result is recorded. Pass an idempotency key made from
// Task.ID and the name to systems that accept one.
//
// A name has 1 to 100 of the characters A-Z a-z 0-9 . _ : / @ -, and begins with a letter or digit. All steps of
// a task have different names. The result is stored as JSON of up to Config.MaxPayload bytes, through the queue's
// codec. Do always returns the result as decoded from that JSON, even when fn has just run. An error from fn is
// wrapped, with the name of the step in its text.
//
// Other errors are:
//   - [ErrChanged], if the task has recorded a step with another name in this place;
//   - [falldue.ErrLeaseLost], if the task no longer belongs to this worker, so nothing is recorded;
//   - [falldue.ErrStopping], if the worker has begun to stop before the step begins. A handler that returns
//     that error releases its task: the task is due immediately, and the run uses up no attempt;
//   - [falldue.ErrInvalid], for a name or a result that cannot be stored, a name that occurs twice, a step within
//     another step, and more than 1,000 steps;
//   - the cause of the end of ctx, if ctx has ended before the step begins;
//   - errors of the database and of the codec.
//
// Do wraps these errors. Return them from the handler.
func Do[T, A any](ctx context.Context, t falldue.Task[A], name string, fn func(ctx context.Context) (T, error)) (T, error) {
	return do[T](ctx, t, name, fn == nil, func(step *steplog.Step) (json []byte, err error) {
		return finish(ctx, step, name, func() (T, error) { return fn(ctx) })
	})
}

// DoTx runs a step that writes to the queue's database. The writes of the step and the record of its success commit
// together, so that they happen exactly once. fn begins a transaction, writes, calls record with the transaction and
// the result, and commits. DoTx is otherwise like [Do].
//
// If fn returns nil although its transaction did not commit, the error wraps [ErrNotCommitted]. If fn returns nil
// without calling record, the error wraps [falldue.ErrInvalid]. For the last step of a task, fn may call [falldue.Task.DoneTx] after record, in the same transaction.
func DoTx[T, A any](ctx context.Context, t falldue.Task[A], name string, fn func(ctx context.Context, record func(tx falldue.Tx, result T) error) error) (T, error) {
	return do[T](ctx, t, name, fn == nil, func(step *steplog.Step) (json []byte, err error) {
		record := func(tx falldue.Tx, result T) error {
			if err := store.CheckTx(tx); err != nil {
				return invalid("step %q: %w", name, err)
			}
			if json, err = encode("result", name, result); err != nil {
				return err
			}
			return explain(step.FinishTx(ctx, tx, json))
		}
		if err := fn(ctx, record); err != nil {
			return nil, fmt.Errorf("step %q: %w", name, err)
		}
		if json == nil {
			return nil, invalid("step %q returned nil without calling record", name)
		}
		committed, err := step.Committed(ctx)
		if err == nil && !committed {
			err = ErrNotCommitted
		}
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", name, err)
		}
		return json, nil
	})
}

// do runs a step with a function that records the result and returns its JSON.
func do[T, A any](ctx context.Context, t falldue.Task[A], name string, isNil bool, fn func(*steplog.Step) (json []byte, err error)) (result T, err error) {
	if isNil {
		return result, invalid("step %.101q: the function is nil", name)
	}
	calls := hooks.Of[interface{ Calls() hooks.TaskCalls }](&t).Calls()
	if calls == nil {
		return result, invalid("step %.101q of a Task that belongs to no worker: for a test, make the Task with tasktest.NewTask or NewTaskOf", name)
	}
	step, err := calls.Steps().Begin(ctx, name)
	if err != nil {
		return result, explain(err)
	}
	json, done := step.Done()
	if !done {
		if json, err = runStep(step, fn); err != nil {
			return result, err
		}
	}
	if result, err = storable.Decoder[T]()(json); err != nil {
		return result, fmt.Errorf("decode the result of step %q as %T: %w", name, result, err)
	}
	return result, nil
}

// runStep runs a step that has begun, and ends it, even if fn panics.
func runStep(step *steplog.Step, fn func(*steplog.Step) ([]byte, error)) ([]byte, error) {
	done := false
	defer func() { step.End(done) }()
	json, err := fn(step)
	done = err == nil
	return json, err
}

// finish calls fn and records its result.
func finish[T any](ctx context.Context, step *steplog.Step, name string, fn func() (T, error)) (json []byte, err error) {
	result, err := fn()
	if err != nil {
		return nil, fmt.Errorf("step %q: %w", name, err)
	}
	if json, err = encode("result", name, result); err != nil {
		return nil, err
	}
	return json, explain(step.Finish(ctx, json))
}

func encode(what, name string, v any) ([]byte, error) {
	json, err := storable.JSON(v)
	if err != nil {
		return nil, invalid("%s of step %q: %w", what, name, err)
	}
	return json, nil
}

// explain returns an error of the engine as the API has it.
func explain(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrChanged), errors.Is(err, falldue.ErrInvalid):
		return err
	case errors.Is(err, steplog.ErrStep):
		return invalid("%w", err)
	}
	return err
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{falldue.ErrInvalid}, args...)...)
}
