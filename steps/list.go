package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

// Step is a recorded step of a task.
type Step struct {
	// Number is the place of the step, from 1.
	Number int
	Name   string
	// Done reports whether the step has succeeded. Otherwise the step is running, has failed, or was lost with
	// its run.
	Done bool
	// Result is the result of a step that is done. Cursor is the last saved cursor of a step that is not done. Otherwise,
	// the field is nil.
	Result, Cursor json.RawMessage
	// Crashes is how many runs were lost while the step ran, for example because their workers died. A
	// lost run is counted when the task runs again, or when a call cancels or changes the task.
	Crashes int
	// Fence is the fencing token of the run that last wrote this record.
	Fence int64
	// StartedAt is when the step last began. UpdatedAt is when it last began, saved its cursor or succeeded.
	// Both are times of the database's clock.
	StartedAt, UpdatedAt time.Time
	// DecodeError is the error of the queue's codec if it cannot decode the result or the cursor. Result and Cursor are
	// then nil.
	DecodeError error
}

// queue is what this package uses of a *falldue.Queue, in addition to its store.
type queue interface {
	Decoded(p falldue.Place, stored []byte) ([]byte, error)
}

// Of returns the recorded steps of the task with an ID, in order. For a task whose handler has used no steps, it
// returns no steps and no error. The error wraps [falldue.ErrNotFound] if there is no such task.
func Of(ctx context.Context, q *falldue.Queue, id int64) ([]Step, error) {
	s := hooks.StoreOf(q)
	t, err := s.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.Steps(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the steps of task %d: %w", id, err)
	}
	list := make([]Step, len(rows))
	for i, r := range rows {
		list[i] = Step{
			Number: r.N, Name: r.Name, Done: r.Result.Valid, Crashes: r.Crashes, Fence: r.Fence,
			StartedAt: store.Time(r.Started), UpdatedAt: store.Time(r.Updated),
		}
		var errs [2]error
		if r.Result.Valid {
			list[i].Result, errs[0] = hooks.Of[queue](q).Decoded(falldue.Place{Kind: t.Kind, Column: "step:" + r.Name, TaskID: id}, []byte(r.Result.V))
		}
		if r.Cursor.Valid {
			list[i].Cursor, errs[1] = hooks.Of[queue](q).Decoded(falldue.Place{Kind: t.Kind, Column: "cursor:" + r.Name, TaskID: id}, []byte(r.Cursor.V))
		}
		if list[i].DecodeError = errors.Join(errs[:]...); list[i].DecodeError != nil {
			list[i].Result, list[i].Cursor = nil, nil
		}
	}
	return list, nil
}

// Forget deletes the recorded steps of the task with an ID, so that the next attempt runs all steps again. The error
// wraps [falldue.ErrRunning] for a task that runs, and [falldue.ErrNotFound] if there is no such task.
func Forget(ctx context.Context, q *falldue.Queue, id int64) error {
	s := hooks.StoreOf(q)
	done, err := s.ForgetSteps(ctx, id)
	if err == nil && !done {
		if _, err = s.Task(ctx, id); err == nil {
			err = fmt.Errorf("%w: cannot forget the steps of task %d", falldue.ErrRunning, id)
		}
	}
	return err
}
