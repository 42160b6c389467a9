package falldue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/falldue/falldue/internal/store"
)

// Task returns the task with an ID. The error wraps [ErrNotFound] if there is no
// such task: no task ever had the ID, or the task has been deleted.
func (q *Queue) Task(ctx context.Context, id int64) (TaskInfo, error) {
	t, err := q.store.Task(ctx, id)
	if err != nil {
		return TaskInfo{}, err
	}
	return taskInfo(t, q.cfg.Codec), nil
}

func taskInfo(t store.Task, c Codec) TaskInfo {
	info := TaskInfo{
		ID: t.ID, Queue: t.Queue, Kind: t.Kind, Policy: t.Policy, Key: t.Key, Priority: t.Priority, State: State(t.State),
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Fence: t.Fence,
		UpdatedAt: store.Time(t.Updated), CreatedAt: store.Time(t.Created), Now: store.Time(t.Now),
		ClaimedBy: t.ClaimedBy, LastError: t.LastError.V, Metadata: store.ReadMetadata(t.Metadata), Timeout: store.ReadTimeout(t.Metadata), ExpireAt: store.ReadExpiry(t.Metadata),
	}
	var errs [2]error
	info.Payload, errs[0] = decode(c, payloadOf(t.Kind), t.Payload)
	info.Result, errs[1] = decode(c, resultOf(t.Kind, t.ID), t.Result)
	if info.DecodeError = errors.Join(errs[:]...); info.DecodeError != nil {
		info.Payload, info.Result = nil, nil
	}
	if t.Attempts > 0 {
		info.FirstAttemptedAt = store.Time(t.First)
	}
	if t.Attempted > 0 {
		info.AttemptedAt = store.Time(t.Attempted)
	}
	return info
}

// Progress returns the last report of a task's handler ([Task.Progress]), or the zero Progress if there is none. The
// error wraps [ErrNotFound] if there is no such task, such as a done task that has been deleted.
func (q *Queue) Progress(ctx context.Context, id int64) (Progress, error) {
	p, ok, err := q.store.Progress(ctx, id)
	if err == nil && !ok {
		_, err = q.store.Task(ctx, id)
	}
	if err != nil || !ok {
		return Progress{}, err
	}
	return Progress{Fraction: float64(p.Millionths) / 1e6, Message: p.Message, Fence: p.Fence, UpdatedAt: store.Time(p.Updated)}, nil
}

// ResultOf returns the result of a task, which its handler has set with [Task.SetResult]. The error wraps
// [ErrNotFound] if there is no such task, such as a done task that has been deleted, and [ErrNoResult] if the task
// has no result, or none yet. If the result cannot be decoded as a T, ResultOf returns another error.
func ResultOf[T any](ctx context.Context, q *Queue, id int64) (result T, err error) {
	info, err := q.Task(ctx, id)
	if err != nil {
		return result, err
	}
	if info.DecodeError != nil {
		return result, fmt.Errorf("result of task %d: %w", id, info.DecodeError)
	}
	if info.Result == nil {
		return result, fmt.Errorf("%w: task %d is %s", ErrNoResult, id, info.State)
	}
	if err := json.Unmarshal(info.Result, &result); err != nil {
		return result, fmt.Errorf("decode the result of task %d as %T: %w", id, result, err)
	}
	return result, nil
}

// Attempts lists the failed attempts of a task, oldest first. For a task that never failed or does not exist, the list
// is empty. For a task with more than 50 failed attempts, the list has only the first 10 and the last 40.
func (q *Queue) Attempts(ctx context.Context, id int64) ([]Attempt, error) {
	rows, err := q.store.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	list := make([]Attempt, len(rows))
	for i, a := range rows {
		list[i] = Attempt{
			Attempt: a.Attempt, Fence: a.Fence, Outcome: Outcome(a.Outcome), Worker: a.Worker,
			FinishedAt: store.Time(a.Finished), Duration: store.Duration(a.Duration), Error: a.Error, Stack: a.Stack.V,
		}
	}
	return list, nil
}
