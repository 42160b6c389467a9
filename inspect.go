package falldue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
)

// Task returns the task with an id. Its error wraps [ErrNotFound] if there is
// none: the id was never given to a task, or the task has been deleted.
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
		ClaimedBy: t.ClaimedBy, LastError: t.LastError.V, Meta: store.ReadMetadata(t.Meta),
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

// Tasks lists the tasks that match a filter, in the order of their ids. Its error
// wraps [ErrInvalid] for an invalid filter, and for one with a Phase or a Match, which are
// for [Queue.Find].
func (q *Queue) Tasks(ctx context.Context, f TaskFilter) ([]TaskInfo, error) {
	return f.list(q.cfg.Codec, func(f store.Filter) ([]store.Task, error) { return q.store.Tasks(ctx, f) })
}

// TasksTx is like [Queue.Tasks] inside tx, the caller's transaction: it lists the tasks
// that tx sees, with those that it has enqueued.
func (q *Queue) TasksTx(ctx context.Context, tx Tx, f TaskFilter) ([]TaskInfo, error) {
	if err := checkTx(tx); err != nil {
		return nil, err
	}
	return f.list(q.cfg.Codec, func(f store.Filter) ([]store.Task, error) { return q.store.TasksTx(ctx, tx, f) })
}

// list checks the filter, and lists tasks by it.
func (f TaskFilter) list(c Codec, read func(store.Filter) ([]store.Task, error)) ([]TaskInfo, error) {
	if err := f.setLimit(); err != nil {
		return nil, err
	}
	if err := f.validate(); err != nil {
		return nil, err
	}
	if f.Phase != "" || f.Match != "" {
		return nil, invalid("a filter with Phase %q and Match %.100q; Queue.Find knows them, and Tasks does not", f.Phase, f.Match)
	}
	rows, err := read(f.stored())
	if err != nil {
		return nil, err
	}
	list := make([]TaskInfo, len(rows))
	for i, t := range rows {
		list[i] = taskInfo(t, c)
	}
	return list, nil
}

// Progress returns what the handler of a task has reported with [Task.Progress], in the
// run that reported last. It is the zero Progress if none has. The error wraps
// [ErrNotFound] if there is neither the task, which may have been deleted since it was done,
// nor anything of it.
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

// ResultOf returns the result of a task, which its handler has set with [Task.SetResult].
// Its error wraps [ErrNotFound] if there is no such task, also if it has been deleted
// since it was done, and [ErrNoResult] if the task has no result, or none yet. A result
// that is no T gives another error.
func ResultOf[T any](ctx context.Context, q *Queue, id int64) (result T, err error) {
	info, err := q.Task(ctx, id)
	if err != nil {
		return result, err
	}
	if info.DecodeError != nil {
		return result, fmt.Errorf("the result of task %d: %w", id, info.DecodeError)
	}
	if info.Result == nil {
		return result, fmt.Errorf("%w: task %d, which is %s", ErrNoResult, id, info.State)
	}
	if err := json.Unmarshal(info.Result, &result); err != nil {
		return result, fmt.Errorf("decode the result of task %d as %T: %w", id, result, err)
	}
	return result, nil
}

// PolicyByKey returns the policy that tasks have of their own under a key, which is the Policy
// of a [TaskInfo]. Its error wraps [ErrNotFound] if no such policy is stored.
func (q *Queue) PolicyByKey(ctx context.Context, key string) (backoff.Policy, error) {
	texts, err := q.store.Policies(ctx, []string{key})
	if err != nil {
		return backoff.Policy{}, err
	}
	text, ok := texts[key]
	if !ok {
		return backoff.Policy{}, fmt.Errorf("%w with policy %.100q: it is not in the policies table", ErrNotFound, key)
	}
	return backoff.Parse(text)
}

// Attempts lists the failed attempts of a task, oldest first. It returns none
// for a task that never failed or does not exist.
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

// Counts returns the number of tasks of each queue, kind and state. It reads a
// whole index of the table, or on PostgreSQL the whole table.
func (q *Queue) Counts(ctx context.Context) ([]Count, error) {
	rows, err := q.store.Counts(ctx)
	return countsOf(rows), err
}

// CountsAbout returns about what [Queue.Counts] does, in a time that does not grow with the
// number of tasks. [Count].About says which numbers are estimates; those of few tasks
// are exact. PostgreSQL counts the tasks in a sample of the table's pages, MySQL and MariaDB
// say how many entries they expect in parts of the index, and SQLite and TiDB count the tasks in
// ranges of ids, as do MySQL and MariaDB with more than 1,000 lanes. A group of few tasks may
// be missing if there are more than 1,000 lanes.
//
// A Queue remembers the numbers for ten times as long as it took to find them.
func (q *Queue) CountsAbout(ctx context.Context) ([]Count, error) {
	return q.about.get(ctx, q.store.AboutCounts)
}

// Overdue lists, by queue and kind, the tasks that have been due for more than a
// minute: no worker handles their kind in their queue, the workers that do are too
// busy, or a limit or a sequence holds them back. Running tasks are not overdue, nor are
// paused ones ([Queue.Pause]). A task that failed before counts as due a day after its
// failure if this process does not know its policy, which it knows for kinds that it
// handles and for tasks without a policy of their own.
//
// Overdue jumps from lane to lane in the index, and costs no more if more tasks wait.
// Workers call it once a minute, and log tasks of kinds that they do not handle if
// the first of them has not been taken since.
func (q *Queue) Overdue(ctx context.Context) ([]Overdue, error) {
	handlers, _ := q.handlers()
	reader, overrides, err := q.changesNow(ctx, handlers)
	if err != nil {
		return nil, err
	}
	f := upkeep.NewOverdueFinder(q.store, handlers, reader.Paused, overrides)
	lanes, err := f.Find(ctx, func(string, string) bool { return false })
	if err != nil {
		return nil, err
	}
	found, err := f.Total(ctx, lanes)
	list := make([]Overdue, len(found))
	for i, o := range found {
		list[i] = Overdue(o)
	}
	return list, err
}
