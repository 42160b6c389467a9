package falldue

import (
	"context"
	"slices"

	"github.com/falldue/falldue/internal/store"
)

// TaskFilter picks tasks. The zero value picks all of them.
type TaskFilter struct {
	Queue, Kind string
	State       State
	// After is the id of the last task of the page before.
	After int64
	// Limit is the most tasks to return. Defaults to 100; 10,000 at the most.
	Limit int
}

// Task looks a task up. Its error wraps [ErrNotFound] for an id that is not
// there: it never was, or is done and not kept.
func (q *Queue) Task(ctx context.Context, id int64) (TaskInfo, error) {
	t, err := q.store.Task(ctx, id)
	if err != nil {
		return TaskInfo{}, err
	}
	return taskInfo(t), nil
}

func taskInfo(t store.Task) TaskInfo {
	info := TaskInfo{
		ID: t.ID, Queue: t.Queue, Kind: t.Kind, Policy: t.Policy, Priority: t.Priority, State: State(t.State),
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Fence: t.Fence,
		UpdatedAt: store.Time(t.Updated), CreatedAt: store.Time(t.Created), Now: store.Time(t.Now),
		ClaimedBy: t.ClaimedBy, LastError: t.LastError.V, Payload: t.Payload, Result: t.Result,
	}
	if t.Attempts > 0 {
		info.FirstAttemptedAt = store.Time(t.First)
	}
	if t.Fence > 0 {
		info.AttemptedAt = store.Time(t.Attempted)
	}
	return info
}

// Tasks lists tasks in the order of their ids. Its error wraps [ErrInvalid] for
// a filter that no task can match: a name or a state that there cannot be.
func (q *Queue) Tasks(ctx context.Context, f TaskFilter) ([]TaskInfo, error) {
	if f.Limit == 0 {
		f.Limit = 100
	}
	if f.Limit < 0 || f.Limit > 10_000 {
		return nil, invalid("Limit %d; allowed are 1 to 10,000", f.Limit)
	}
	if f.Queue != "" {
		if err := validName("queue", f.Queue); err != nil {
			return nil, err
		}
	}
	if f.Kind != "" {
		if err := validName("kind", f.Kind); err != nil {
			return nil, err
		}
	}
	if f.State != "" && !slices.Contains(states, f.State) {
		return nil, invalid("state %.100q; allowed are %v", f.State, states)
	}
	rows, err := q.store.Tasks(ctx, store.Filter{Queue: f.Queue, Kind: f.Kind, State: string(f.State), After: f.After, Limit: f.Limit})
	if err != nil {
		return nil, err
	}
	list := make([]TaskInfo, len(rows))
	for i, t := range rows {
		list[i] = taskInfo(t)
	}
	return list, nil
}

// Attempts lists what went wrong with a task, oldest first: nothing for one that
// never failed, or is not there.
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

// Counts counts all tasks by queue, kind and state. It reads the whole index.
func (q *Queue) Counts(ctx context.Context) ([]Count, error) {
	rows, err := q.store.Counts(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Count, len(rows))
	for i, c := range rows {
		list[i] = Count{Queue: c.Queue, Kind: c.Kind, State: State(c.State), Tasks: c.Tasks}
	}
	return list, nil
}

// Retry makes a dead or cancelled task due, with all its attempts before it;
// what is recorded of the old ones stays. A worker of this process looks at
// once, others at their next poll. Its error wraps [ErrNotFound] for a task that
// is in another state.
func (q *Queue) Retry(ctx context.Context, id int64) error {
	err := q.store.RetryTask(ctx, id)
	if err == nil {
		q.Wake()
	}
	return err
}

// Cancel calls off a task that is not finished. The context of its handler, if
// it runs, ends with [ErrLeaseLost] when its lease is next extended, within a
// third of Config.Lease. Its error wraps [ErrNotFound] for a task that is
// finished.
func (q *Queue) Cancel(ctx context.Context, id int64) error {
	return q.store.Cancel(ctx, id)
}
