package falldue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/sqlgen"
)

// maxDelay is the longest a task can be told to wait.
const maxDelay = sqlgen.MaxDelay * time.Second

// EnqueueOptions are a task's own settings. The zero value runs it at once,
// as its kind says.
type EnqueueOptions struct {
	// Delay is how long the task waits before it first runs: 0 to 36,500 days.
	Delay time.Duration
	// At is when the task first runs; a moment in the past is at once. It
	// counts by the database's clock. Not together with Delay.
	At time.Time
	// Queue is where the task waits. Defaults to the kind's.
	Queue string
	// Priority orders the tasks of a queue, lower first. 0 is the kind's.
	Priority int
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

// EnqueueDrafts stores tasks of any kinds, all or none, and returns their ids
// in the order of the drafts.
func (q *Queue) EnqueueDrafts(ctx context.Context, drafts ...Draft) ([]int64, error) {
	return q.enqueue(ctx, nil, drafts)
}

// EnqueueDraftsTx is EnqueueDrafts inside the caller's transaction.
func (q *Queue) EnqueueDraftsTx(ctx context.Context, tx Tx, drafts ...Draft) ([]int64, error) {
	if tx == nil {
		return nil, invalid("the transaction is nil")
	}
	return q.enqueue(ctx, tx, drafts)
}

// enqueue checks every draft before it writes the first.
func (q *Queue) enqueue(ctx context.Context, tx Tx, drafts []Draft) ([]int64, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	rows := make([]sqlgen.Row, len(drafts))
	brought := map[string]backoff.Policy{}
	for i, d := range drafts {
		row, err := q.row(d, brought)
		if err != nil {
			return nil, fmt.Errorf("enqueue %.100q: %w", d.kind.name, err)
		}
		rows[i] = row
	}
	// In one order, so that no two transactions wait for each other's policies.
	for _, key := range slices.Sorted(maps.Keys(brought)) {
		if err := q.policies.put(ctx, tx, key, brought[key]); err != nil {
			return nil, fmt.Errorf("enqueue: store a policy: %w", err)
		}
	}
	ids, err := q.store.enqueue(ctx, tx, rows)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if tx == nil {
		for i := range rows {
			q.wake(rows[i])
		}
	}
	return ids, nil
}

// row makes the row of a draft, in the order of sqlgen.EnqueueColumns, and
// notes the policy that it brings.
func (q *Queue) row(d Draft, brought map[string]backoff.Policy) (sqlgen.Row, error) {
	if d.err != nil {
		return nil, d.err
	}
	o := d.opts
	queue, priority, policy := d.kind.Queue, d.kind.Priority, ""
	if o.Queue != "" {
		queue = o.Queue
	}
	if err := validName("queue", queue); err != nil {
		return nil, err
	}
	if o.Priority != 0 {
		priority = o.Priority
	}
	if err := validPriority(priority); err != nil {
		return nil, err
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > 1<<31-1 {
		return nil, invalid("MaxAttempts %d; allowed are 0, the policy's own, to 2,147,483,647", o.MaxAttempts)
	}
	if o.Policy != nil {
		if err := o.Policy.Err(); err != nil {
			return nil, fmt.Errorf("%w: policy: %w", ErrInvalid, err)
		}
		policy = o.Policy.Key()
		brought[policy] = *o.Policy
	}
	if o.Delay < 0 || o.Delay > maxDelay {
		return nil, invalid("Delay %v; allowed are 0 to %v", o.Delay, maxDelay)
	}
	var at any
	if !o.At.IsZero() {
		if o.Delay != 0 {
			return nil, invalid("both Delay %v and At %v; allowed is one", o.Delay, o.At)
		}
		if y := o.At.UTC().Year(); y < 1970 || y > 9000 {
			return nil, invalid("At %v; allowed are the years 1970 to 9000", o.At)
		}
		at = o.At.UnixMicro()
	}
	payload, err := json.Marshal(d.args)
	if err != nil {
		return nil, fmt.Errorf("%w: arguments: %w", ErrInvalid, err)
	}
	if err := validPayload(payload, q.cfg.MaxPayload); err != nil {
		return nil, err
	}
	return sqlgen.Row{queue, d.kind.name, policy, int64(priority), int64(o.MaxAttempts), at, o.Delay.Microseconds(), string(payload)}, nil
}

func validPriority(p int) error {
	if p < -32768 || p > 32767 {
		return invalid("priority %d; allowed are -32,768 to 32,767", p)
	}
	return nil
}
