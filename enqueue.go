package falldue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// EnqueueOptions are a task's own settings. The zero value, like a nil pointer,
// runs it at once, as its kind says.
type EnqueueOptions struct {
	// Delay is how long the task waits before it first runs: 0 to 36,500 days.
	Delay time.Duration
	// RunRunAt is when the task first runs, in the years 1970 to 9000; a moment in the
	// past is at once. It counts by the database's clock. Not together with Delay.
	RunAt time.Time
	// Queue is where the task waits. Defaults to the kind's.
	Queue string
	// Priority orders the tasks of a queue: lower first, -32,768 to 32,767. Defaults
	// to the kind's.
	Priority *int
	// Policy is the task's own. Defaults to the kind's, and then follows it
	// when it changes.
	Policy *backoff.Policy
	// MaxAttempts is how often the task may run before it is dead. 0 is what
	// its policy says.
	MaxAttempts int
}

// Enqueue stores a task and returns its id. It is in a transaction of its own:
// when Enqueue returns without an error, the task will run.
//
// Errors wrap [ErrInvalid] for arguments or options, and [ErrNotMigrated] where
// the tables are missing. After another error, such as a broken connection,
// nobody knows whether the task was stored.
func (k Kind[A]) Enqueue(ctx context.Context, q *Queue, args A, opts *EnqueueOptions) (int64, error) {
	return firstID(k.EnqueueMany(ctx, q, []A{args}, opts))
}

// EnqueueTx stores a task inside the caller's transaction, a *sqlx.Tx or
// *sql.Tx: it will run if that transaction commits, and never have been if it
// does not. Workers see it at their next poll after the commit; those of this
// process at once, if it calls [Queue.Wake].
func (k Kind[A]) EnqueueTx(ctx context.Context, q *Queue, tx Tx, args A, opts *EnqueueOptions) (int64, error) {
	return firstID(k.EnqueueManyTx(ctx, q, tx, []A{args}, opts))
}

// EnqueueMany stores tasks that share their options, all or none, and returns
// their ids in the order of args; of none none. More than 500 go into PostgreSQL
// by COPY where the driver streams it, as lib/pq does.
func (k Kind[A]) EnqueueMany(ctx context.Context, q *Queue, args []A, opts *EnqueueOptions) ([]int64, error) {
	return k.enqueue(ctx, q, nil, args, opts)
}

// EnqueueManyTx is EnqueueMany inside the caller's transaction.
func (k Kind[A]) EnqueueManyTx(ctx context.Context, q *Queue, tx Tx, args []A, opts *EnqueueOptions) ([]int64, error) {
	if tx == nil {
		return nil, invalid("the transaction is nil")
	}
	return k.enqueue(ctx, q, tx, args, opts)
}

func (k Kind[A]) enqueue(ctx context.Context, q *Queue, tx Tx, args []A, opts *EnqueueOptions) ([]int64, error) {
	return q.enqueue(ctx, tx, len(args), func(i int) EnqueueParams { return newParams(&k.kind, args[i], opts) })
}

// EnqueueParams is a task to be, for [Queue.EnqueueMany]: tasks of several kinds, or
// with options of their own, stored at once.
type EnqueueParams struct {
	kind *kind
	args any
	opts EnqueueOptions
	err  error
}

// Params makes a task to be of this kind.
func (k Kind[A]) Params(args A, opts *EnqueueOptions) EnqueueParams {
	return newParams(&k.kind, args, opts)
}

func newParams(k *kind, args any, opts *EnqueueOptions) EnqueueParams {
	p := EnqueueParams{kind: k, args: args, err: k.err}
	if opts != nil {
		p.opts = *opts
	}
	return p
}

func firstID(ids []int64, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// EnqueueMany stores tasks of any kinds, all or none, and returns their ids
// in the order of the params.
func (q *Queue) EnqueueMany(ctx context.Context, params ...EnqueueParams) ([]int64, error) {
	return q.enqueue(ctx, nil, len(params), func(i int) EnqueueParams { return params[i] })
}

// EnqueueManyTx is EnqueueMany inside the caller's transaction.
func (q *Queue) EnqueueManyTx(ctx context.Context, tx Tx, params ...EnqueueParams) ([]int64, error) {
	if tx == nil {
		return nil, invalid("the transaction is nil")
	}
	return q.enqueue(ctx, tx, len(params), func(i int) EnqueueParams { return params[i] })
}

// enqueue stores n tasks. It checks every one before it writes the first.
func (q *Queue) enqueue(ctx context.Context, tx Tx, n int, params func(i int) EnqueueParams) ([]int64, error) {
	if n == 0 {
		return nil, nil
	}
	list, entries := make([]pending, n), make([]store.Entry, n)
	for i := range list {
		p := params(i)
		if p.kind == nil {
			return nil, fmt.Errorf("enqueue: %w", invalid("task %d has empty EnqueueParams; Kind.Params makes them", i))
		}
		var err error
		if list[i], err = q.pending(p); err != nil {
			return nil, fmt.Errorf("enqueue %.100q: %w", p.kind.name, err)
		}
		entries[i] = list[i].Entry
	}
	for _, s := range q.stages {
		if err := s.stage(ctx, tx, list); err != nil {
			return nil, fmt.Errorf("enqueue: %w", err)
		}
	}
	ids, err := q.store.Enqueue(ctx, tx, entries)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if tx == nil {
		q.enqueued(entries)
	}
	return ids, nil
}

// pending checks params, and makes an entry of them.
func (q *Queue) pending(d EnqueueParams) (e pending, err error) {
	if d.err != nil {
		return e, d.err
	}
	o := d.opts
	e.Entry = store.Entry{Queue: cmp.Or(o.Queue, d.kind.Queue), Kind: d.kind.name, Priority: d.kind.Priority, MaxAttempts: o.MaxAttempts, Delay: o.Delay.Microseconds()}
	if o.Priority != nil {
		e.Priority = *o.Priority
	}
	if e.Queue == "" || e.Queue != d.kind.Queue { // the kind's own was checked before
		if err := validName("queue", e.Queue); err != nil {
			return e, err
		}
	}
	if err := validPriority(e.Priority); err != nil {
		return e, err
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > 1<<31-1 {
		return e, invalid("MaxAttempts %d; allowed are 0, the policy's own, to 2,147,483,647", o.MaxAttempts)
	}
	if o.Policy != nil {
		if err := o.Policy.Err(); err != nil {
			return e, fmt.Errorf("%w: policy: %w", ErrInvalid, err)
		}
		e.Policy, e.policy = o.Policy.Key(), o.Policy
	}
	if o.Delay < 0 || o.Delay > maxDelay {
		return e, invalid("Delay %v; allowed are 0 to %v", o.Delay, maxDelay)
	}
	if !o.RunAt.IsZero() {
		if o.Delay != 0 {
			return e, invalid("both Delay %v and RunAt %v; allowed is one", o.Delay, o.RunAt)
		}
		if y := o.RunAt.UTC().Year(); y < 1970 || y > 9000 {
			return e, invalid("RunAt %v; allowed are the years 1970 to 9000", o.RunAt)
		}
		e.At = sql.Null[int64]{V: o.RunAt.UnixMicro(), Valid: true}
	}
	payload, err := json.Marshal(d.args)
	if err != nil {
		return e, fmt.Errorf("%w: arguments: %w", ErrInvalid, err)
	}
	if err := validPayload(payload, q.cfg.MaxPayload); err != nil {
		return e, err
	}
	e.Payload = string(payload)
	return e, nil
}
