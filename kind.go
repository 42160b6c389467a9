package falldue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
)

// Kind is a kind of task: a name, the type of its arguments, and how its tasks
// are retried. Make it once, with [NewKind], at package level: whoever enqueues
// and whoever handles share it.
type Kind[A any] struct{ kind }

// KindConfig is how the tasks of a kind behave. The zero value is ready for use.
type KindConfig struct {
	// Policy says when a failed task runs again, and when it is dead. Workers
	// evaluate the policy they were built with, so that a change acts on every
	// waiting task as soon as they run, with no row written. Defaults to
	// backoff.Zizq: 15 s + n⁴, 25 retries.
	Policy backoff.Policy
	// Queue is where tasks of this kind wait, for workers whose Config.Queues
	// names it. Defaults to [DefaultQueue].
	Queue string
	// Priority orders the tasks of a queue: lower first, -32,768 to 32,767.
	// Defaults to 0.
	Priority int
	// Timeout is how long a handler may run before its context ends, with the
	// cause [ErrTimeout]; what it returns then counts as ever. Defaults to 0: as
	// long as it likes.
	Timeout time.Duration
}

// kind is a Kind without the type of its arguments.
type kind struct {
	name string
	KindConfig
	err error // what is wrong with it, told when it is first used
}

// NewKind makes a kind. What is wrong with a name or a configuration is told
// by whoever first uses the kind: Enqueue, or Run for its handler.
func NewKind[A any](name string, cfg KindConfig) Kind[A] {
	if cfg.Queue == "" {
		cfg.Queue = DefaultQueue
	}
	return Kind[A]{kind{name: name, KindConfig: cfg, err: validKind(name, cfg)}}
}

func validKind(name string, cfg KindConfig) error {
	if err := validName("kind", name); err != nil {
		return err
	}
	if err := validName("queue", cfg.Queue); err != nil {
		return fmt.Errorf("kind %s: %w", name, err)
	}
	if err := validPriority(cfg.Priority); err != nil {
		return fmt.Errorf("kind %s: %w", name, err)
	}
	if cfg.Timeout < 0 {
		return invalid("timeout %v of kind %s; allowed are 0 and more", cfg.Timeout, name)
	}
	if err := cfg.Policy.Err(); err != nil {
		return fmt.Errorf("%w: policy of kind %s: %w", ErrInvalid, name, err)
	}
	return nil
}

// Name is the kind's name.
func (k Kind[A]) Name() string { return k.name }

// Config is how the kind's tasks behave, defaults filled in.
func (k Kind[A]) Config() KindConfig { return k.KindConfig }

// Enqueue stores a task and returns its id. It is in a transaction of its own:
// when Enqueue returns without an error, the task will run.
//
// Errors wrap [ErrInvalid] for arguments or options, and [ErrNotMigrated] where
// the tables are missing. After another error, such as a broken connection,
// nobody knows whether the task was stored.
func (k Kind[A]) Enqueue(ctx context.Context, q *Queue, args A, opts *EnqueueOptions) (int64, error) {
	return one(k.EnqueueMany(ctx, q, []A{args}, opts))
}

// EnqueueTx stores a task inside the caller's transaction, a *sqlx.Tx or
// *sql.Tx: it will run if that transaction commits, and never have been if it
// does not. Workers see it at their next poll after the commit; those of this
// process at once, if it calls [Queue.Wake].
func (k Kind[A]) EnqueueTx(ctx context.Context, q *Queue, tx Tx, args A, opts *EnqueueOptions) (int64, error) {
	return one(k.EnqueueManyTx(ctx, q, tx, []A{args}, opts))
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

func one(ids []int64, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// Handle makes fn the handler of a kind's tasks in this process; call it before
// Run. fn returns nil when the task is done, an error when it is to be retried
// under its policy, or what [Discard], [Snooze] or [RetryAfter] return. It runs
// at least once for each task, and again when a worker died half way: where
// that matters, see [Task.DoneTx]. A kind that is invalid, or handled twice,
// makes Run return an error.
//
// A panic of fn is a failed attempt ([PanicError]), and so is a payload that is
// not an A, for which fn is not called.
func Handle[A any](q *Queue, k Kind[A], fn func(ctx context.Context, t Task[A]) error) {
	q.register(k.kind, func(ctx context.Context, r *run) error {
		var args A
		if err := json.Unmarshal(r.claim.Payload, &args); err != nil {
			return fmt.Errorf("decode the payload as %T: %w", args, err)
		}
		return fn(ctx, Task[A]{TaskMeta: r.meta(), Args: args, run: r})
	})
}
