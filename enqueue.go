package falldue

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/uniquekey"
)

// Enqueue stores a task in its own transaction. After a nil error, the task will run, unless its
// [Receipt] reports that another task had its unique key. Pass options at most once, to override
// settings of the kind.
//
// The error wraps [ErrInvalid] for invalid arguments, options or kinds, [ErrNotMigrated] if the
// tables are missing, and [ErrExists] if the task has [ConflictFail] and another task holds its
// unique key. After any other error, such as a broken connection, it is not known whether the
// task was stored.
func (k Kind[A]) Enqueue(ctx context.Context, q *Queue, args A, opts ...EnqueueOptions) (Receipt, error) {
	return q.enqueueOne(ctx, nil, newParams(k.kind, args, opts))
}

// EnqueueTx stores a task inside tx, the caller's transaction ([Tx]). The task will run if tx commits, and does not
// exist otherwise. After the commit, workers find the task by polling ([Config].PollInterval). Call [Queue.Wake] after
// the commit to make the worker of this process, and workers that listen, find it immediately. With some settings of
// [Notifications], the commit itself notifies workers that listen. Errors are as for [Kind.Enqueue].
//
// If a unique task is stored, other enqueues with its unique key wait until tx ends, even if an earlier holder of the
// key has finished. With [Unique].WhileWaiting, if another task holds the key, that task does not start before tx ends,
// and sees the writes of tx. After an [ExistsError], tx contains none of the tasks and can continue. After any other
// error, roll back.
func (k Kind[A]) EnqueueTx(ctx context.Context, q *Queue, tx Tx, args A, opts ...EnqueueOptions) (Receipt, error) {
	if err := checkTx(tx); err != nil {
		return Receipt{}, err
	}
	return q.enqueueOne(ctx, tx, newParams(k.kind, args, opts))
}

// EnqueueMany stores a task for each element of args, with the same options, and returns their
// receipts in the order of args. It stores all of them or none. More than 500 tasks go into
// PostgreSQL through COPY if the driver supports it, as lib/pq and package pgxqueue do. Errors
// are as for [Kind.Enqueue].
//
// Of several tasks with the same unique key, only the first is stored. With [ConflictReplace], it gets
// the payload, the metadata, the task key ([EnqueueOptions].Key) and the due time of the last of them.
func (k Kind[A]) EnqueueMany(ctx context.Context, q *Queue, args []A, opts ...EnqueueOptions) ([]Receipt, error) {
	return k.enqueue(ctx, q, nil, args, opts)
}

// EnqueueManyTx is like [Kind.EnqueueMany] but stores the tasks inside tx, as
// [Kind.EnqueueTx] does.
func (k Kind[A]) EnqueueManyTx(ctx context.Context, q *Queue, tx Tx, args []A, opts ...EnqueueOptions) ([]Receipt, error) {
	if err := checkTx(tx); err != nil {
		return nil, err
	}
	return k.enqueue(ctx, q, tx, args, opts)
}

func (k Kind[A]) enqueue(ctx context.Context, q *Queue, tx Tx, args []A, opts []EnqueueOptions) ([]Receipt, error) {
	return q.enqueue(ctx, tx, len(args), func(i int) EnqueueParams { return newParams(k.kind, args[i], opts) })
}

// Params returns a task of this kind for [Queue.EnqueueMany]. It stores nothing. EnqueueMany reports invalid
// arguments.
func (k Kind[A]) Params(args A, opts ...EnqueueOptions) EnqueueParams {
	return newParams(k.kind, args, slices.Clone(opts)) // the caller may change its slice
}

// EnqueueMany stores tasks of any kinds in its own transaction, all or none, and returns their
// receipts in the order of params. Unique keys and errors are as for [Kind.EnqueueMany].
func (q *Queue) EnqueueMany(ctx context.Context, params ...EnqueueParams) ([]Receipt, error) {
	return q.enqueue(ctx, nil, len(params), func(i int) EnqueueParams { return params[i] })
}

// EnqueueManyTx is like [Queue.EnqueueMany] but stores the tasks inside tx, as
// [Kind.EnqueueTx] does.
func (q *Queue) EnqueueManyTx(ctx context.Context, tx Tx, params ...EnqueueParams) ([]Receipt, error) {
	if err := checkTx(tx); err != nil {
		return nil, err
	}
	return q.enqueue(ctx, tx, len(params), func(i int) EnqueueParams { return params[i] })
}

// enqueueOne stores a task.
func (q *Queue) enqueueOne(ctx context.Context, tx Tx, p EnqueueParams) (Receipt, error) {
	receipts, err := q.enqueue(ctx, tx, 1, func(int) EnqueueParams { return p })
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
}

// enqueue stores n tasks.
func (q *Queue) enqueue(ctx context.Context, tx Tx, n int, params func(i int) EnqueueParams) ([]Receipt, error) {
	if fn := q.aroundEnqueue.Load(); fn != nil {
		return throughMiddleware(ctx, tx, *fn, n, params)
	}
	return q.storeTasks(ctx, tx, n, params)
}

// storeTasks stores n tasks, inside of all middleware.
func (q *Queue) storeTasks(ctx context.Context, tx Tx, n int, params func(i int) EnqueueParams) ([]Receipt, error) {
	tasks, err := q.check(n, params)
	if err != nil || n == 0 {
		return nil, err
	}
	var place []int
	if tasks.uniques != nil {
		tasks.entries, tasks.uniques, place, err = uniquekey.Merge(tasks.entries, tasks.uniques)
	}
	var receipts []Receipt
	if err == nil {
		receipts, err = q.insert(ctx, tx, tasks)
	}
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", existsError(err))
	}
	if place != nil {
		receipts = receiptsAt(place, receipts)
	}
	return receipts, nil
}

// throughMiddleware stores n tasks by way of fn.
func throughMiddleware(ctx context.Context, tx Tx, fn EnqueueFunc, n int, params func(i int) EnqueueParams) ([]Receipt, error) {
	if n == 0 {
		return nil, nil
	}
	tasks := make([]EnqueueParams, n) // middleware may change this copy
	for i := range tasks {
		p := params(i)
		p.key, p.own = p.taskKey(), false // the caller may have passed the task twice
		tasks[i] = p
	}
	receipts, err := fn(ctx, tx, tasks)
	if err == nil && len(receipts) != n {
		err = invalid("%d receipts from middleware for %d tasks: must be one for each", len(receipts), n)
	}
	return receipts, err
}

// storeParams stores tasks as an [EnqueueFunc] that is inside of all middleware.
func (q *Queue) storeParams(ctx context.Context, tx Tx, tasks []EnqueueParams) ([]Receipt, error) {
	if tx != nil {
		if err := checkTx(tx); err != nil {
			return nil, err
		}
	}
	if i := slices.IndexFunc(tasks, func(p EnqueueParams) bool { return p.put != nil }); i >= 0 {
		return tasks[i].put(ctx, tasks)
	}
	return q.storeTasks(ctx, tx, len(tasks), func(i int) EnqueueParams { return tasks[i] })
}

// check checks n tasks, and returns them as they will be stored.
func (q *Queue) check(n int, params func(i int) EnqueueParams) (*pending, error) {
	tasks := &pending{entries: make([]store.Entry, n)}
	for i := range tasks.entries {
		p := params(i)
		if p.kind == nil {
			return nil, fmt.Errorf("enqueue: %w", invalid("task %d has empty EnqueueParams or an empty Kind: make them with NewKind and Kind.Params", i))
		}
		var err error
		if tasks.entries[i], err = q.entry(&p); err != nil {
			if n > 1 {
				err = fmt.Errorf("task %d: %w", i, err)
			}
			return nil, fmt.Errorf("enqueue %.100q: %w", p.kind.name, err)
		}
		if tasks.entries[i].Key != "" && ordered(p.kind.Limits) && !statements.SortsTies(q.store.Server()) {
			inOrder(&tasks.entries[i], i)
		}
		o := p.options()
		if own := o.Policy; !own.IsZero() {
			if tasks.policies == nil {
				tasks.policies = map[string]backoff.Policy{}
			}
			tasks.policies[tasks.entries[i].Policy] = own
		}
		if u := o.Unique; u.isSet() {
			if tasks.uniques == nil {
				tasks.uniques = make([]store.Unique, n)
			}
			tasks.uniques[i] = u.store()
		}
	}
	return tasks, nil
}

// inOrder makes the i-th task of a call due i microseconds later. It is for engines that are
// slow to find the first of many tasks with the same due time. Storing n tasks takes longer
// than n microseconds, so the tasks of the next call are due after these.
func inOrder(e *store.Entry, i int) {
	if e.At.Valid {
		e.At.V += int64(i)
	} else {
		e.Delay += int64(i)
	}
}

// entry checks params and returns the task that they describe.
func (q *Queue) entry(d *EnqueueParams) (e store.Entry, err error) {
	if d.err != nil {
		return e, d.err
	}
	o, key := d.options(), d.taskKey()
	e = store.Entry{Queue: cmp.Or(o.Queue, d.kind.Queue), Kind: d.kind.name, Priority: d.kind.Priority, MaxAttempts: o.MaxAttempts, Delay: o.Delay.Microseconds()}
	e.Key = storable.Key(key)
	if e.Key != key && storable.HasParts(key) {
		return e, invalid("key %.200q: a key with parts must have at most 128 visible ASCII characters; see KeyOf", key)
	}
	if o.Priority != nil {
		e.Priority = *o.Priority
	}
	if e.Queue == "" || e.Queue != d.kind.Queue { // the kind's queue was checked by NewKind
		if err := validName("queue", e.Queue); err != nil {
			return e, err
		}
	}
	if err := validPriority(e.Priority); err != nil {
		return e, err
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > 1<<31-1 {
		return e, invalid("MaxAttempts %d: must be 1 to 2,147,483,647, or 0 for the limit of the policy", o.MaxAttempts)
	}
	if !o.Policy.IsZero() {
		if err := o.Policy.Err(); err != nil {
			return e, fmt.Errorf("%w: policy: %w", ErrInvalid, err)
		}
		e.Policy = o.Policy.Key()
	}
	if o.Delay < 0 || o.Delay > maxDelay {
		return e, invalid("Delay %v: must be 0 to %s", o.Delay, longestDelay)
	}
	if !o.RunAt.IsZero() {
		if o.Delay != 0 {
			return e, invalid("both Delay and RunAt are set: set only one")
		}
		if err := validYear("RunAt", o.RunAt); err != nil {
			return e, err
		}
		e.At = sql.Null[int64]{V: o.RunAt.UnixMicro(), Valid: true}
	}
	if o.Timeout < 0 {
		return e, invalid("Timeout %v: must be 0 or more", o.Timeout)
	}
	if !o.ExpireAt.IsZero() {
		if err := validYear("ExpireAt", o.ExpireAt); err != nil {
			return e, err
		}
		if !o.ExpireAt.After(o.RunAt) {
			return e, invalid("ExpireAt %v: must be after RunAt %v", o.ExpireAt, o.RunAt)
		}
	}
	if e.Metadata, err = storedMetadata(o, d.marks); err != nil {
		return e, err
	}
	payload, err := toStore("payload", d.args, q.cfg.MaxPayload)
	if err != nil {
		return e, err
	}
	if o.Unique.isSet() {
		if e.Unique, err = o.Unique.hash(q.cfg.Codec, e.Kind, d.args, payload); err != nil {
			return e, fmt.Errorf("unique: %w", err)
		}
	}
	e.Payload, err = q.encode(payloadOf(e.Kind), payload)
	return e, err
}

// validYear returns an error unless all engines can store a time.
func validYear(name string, at time.Time) error {
	if y := at.UTC().Year(); y < 1970 || y > 9000 {
		return invalid("%s %v: must be in the years 1970 to 9000", name, at)
	}
	return nil
}
