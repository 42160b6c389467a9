package falldue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// maxDelay is the longest a task can be told to wait.
const maxDelay = sqlgen.MaxDelay * time.Second

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

// Tx is a transaction that a task is enqueued or settled in: *sqlx.Tx, *sql.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
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

// enqueue stores n params. It checks every one before it writes the first.
func (q *Queue) enqueue(ctx context.Context, tx Tx, n int, param func(i int) EnqueueParams) ([]int64, error) {
	if n == 0 {
		return nil, nil
	}
	entries := make([]entry, n)
	brought := map[string]backoff.Policy{}
	for i := range entries {
		d := param(i)
		if d.kind == nil {
			return nil, fmt.Errorf("enqueue: %w", invalid("task %d has empty EnqueueParams; Kind.Params makes them", i))
		}
		e, err := q.entry(d, brought)
		if err != nil {
			return nil, fmt.Errorf("enqueue %.100q: %w", d.kind.name, err)
		}
		entries[i] = e
	}
	// In one order, so that no two transactions wait for each other's policies.
	for _, key := range slices.Sorted(maps.Keys(brought)) {
		if err := q.policies.put(ctx, tx, key, brought[key]); err != nil {
			return nil, fmt.Errorf("enqueue: store a policy: %w", err)
		}
	}
	ids, err := q.store.enqueue(ctx, tx, entries)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if tx == nil {
		q.wake(entries)
	}
	return ids, nil
}

// entry is a task on its way into the table.
type entry struct {
	queue, kind, policy   string
	priority, maxAttempts int
	at                    any           // microseconds since 1970 as an int64, or nil: it counts
	delay                 time.Duration // from now, where there is no at
	payload               string
}

// row is the entry in the order of statements.EnqueueColumns, or of PlainColumns.
func (e entry) row(plain bool) statements.Row {
	if plain {
		return statements.Row{e.queue, e.kind, e.payload}
	}
	return statements.Row{e.queue, e.kind, e.policy, int64(e.priority), int64(e.maxAttempts), e.at, e.delay.Microseconds(), e.payload}
}

// alike tells whether two entries differ in nothing but their payload.
func (e entry) alike(other entry) bool {
	e.payload = other.payload
	return e == other
}

// allPlain tells whether all entries are due now and leave to the table what they can.
func allPlain(entries []entry) bool {
	return !slices.ContainsFunc(entries, func(e entry) bool {
		return e != entry{queue: e.queue, kind: e.kind, payload: e.payload}
	})
}

// entry checks params, and notes the policy that it brings.
func (q *Queue) entry(d EnqueueParams, brought map[string]backoff.Policy) (e entry, err error) {
	if d.err != nil {
		return e, d.err
	}
	o := d.opts
	e = entry{queue: cmp.Or(o.Queue, d.kind.Queue), kind: d.kind.name, priority: d.kind.Priority, maxAttempts: o.MaxAttempts, delay: o.Delay}
	if o.Priority != nil {
		e.priority = *o.Priority
	}
	if e.queue == "" || e.queue != d.kind.Queue { // the kind's was looked at before
		if err := validName("queue", e.queue); err != nil {
			return e, err
		}
	}
	if err := validPriority(e.priority); err != nil {
		return e, err
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > 1<<31-1 {
		return e, invalid("MaxAttempts %d; allowed are 0, the policy's own, to 2,147,483,647", o.MaxAttempts)
	}
	if o.Policy != nil {
		if err := o.Policy.Err(); err != nil {
			return e, fmt.Errorf("%w: policy: %w", ErrInvalid, err)
		}
		e.policy = o.Policy.Key()
		brought[e.policy] = *o.Policy
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
		e.at = o.RunAt.UnixMicro()
	}
	payload, err := json.Marshal(d.args)
	if err != nil {
		return e, fmt.Errorf("%w: arguments: %w", ErrInvalid, err)
	}
	if err := validPayload(payload, q.cfg.MaxPayload); err != nil {
		return e, err
	}
	e.payload = string(payload)
	return e, nil
}

func validPriority(p int) error {
	if p < -32768 || p > 32767 {
		return invalid("priority %d; allowed are -32,768 to 32,767", p)
	}
	return nil
}
