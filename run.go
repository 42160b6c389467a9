package falldue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// run is one execution of a task: a claim, its handler, and how it ends.
type run struct {
	*runEnv
	claim   *store.Claim
	rule    *rule
	handler *handler
	claimed time.Time // when the claim was sent; leases and elapsed time count from there
	lease   lease

	mu     sync.Mutex
	result sql.Null[string] // that the handler set, as JSON

	end    store.Settlement // how it ends, once the handler has returned
	giveUp time.Time        // when to try no longer to settle it; zero while the database did not refuse that
}

// runEnv is what all runs of a poller share.
type runEnv struct {
	queue, worker string
	maxPayload    int
	settleTx      func(ctx context.Context, tx store.Tx, worker string, e *store.Settlement) (bool, error)
}

func (r *run) meta() TaskMeta {
	c := r.claim
	return TaskMeta{
		ID: c.ID, Kind: c.Was.Kind, Queue: r.queue, Attempt: c.Attempts, MaxAttempts: r.maxAttempts(),
		Fence: c.Fence, Priority: c.Was.Priority, CreatedAt: store.Time(c.Created),
	}
}

func (r *run) maxAttempts() int {
	if r.claim.MaxAttempts > 0 {
		return r.claim.MaxAttempts
	}
	return r.rule.policy.MaxAttempts()
}

func (r *run) setResult(json string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = sql.Null[string]{V: json, Valid: true}
}

func (r *run) getResult() sql.Null[string] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// execute runs the handler and returns how the claim ends, or false when it is
// not this worker's to end.
func (r *run) execute(ctx context.Context) (store.Settlement, bool) {
	if most := r.maxAttempts(); most > 0 && r.claim.Attempts > most {
		return r.attemptsExhausted(most), true
	}
	if r.claim.Fence == math.MaxInt64 {
		return r.fencesExhausted(), true
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !r.lease.begin(cancel) {
		return store.Settlement{}, false
	}
	started := time.Now()
	err := r.handler.fn(ctx, r)
	return r.finish(withCause(ctx, err), time.Since(started))
}

// errGoexit is the error of a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit")

// finish returns how the claim ends after the handler ended with err, or false
// when it is not this worker's to end.
func (r *run) finish(err error, took time.Duration) (store.Settlement, bool) {
	e := r.conclude(err, took)
	lost, _ := r.lease.state()
	return e, !lost
}

// release gives back a claim whose handler never started: the row is as the
// claim found it, but for its fence.
func (r *run) release() store.Settlement {
	e := r.settlement()
	e.To, e.AttemptsDelta = r.claim.Was.State, -1
	e.Wait = store.Duration(r.claim.Anchor-r.claim.Now) - time.Since(r.claimed)
	return e
}

// doneTx settles the task as done inside the handler's own transaction.
func (r *run) doneTx(ctx context.Context, tx Tx) error {
	if tx == nil {
		return invalid("the transaction is nil")
	}
	if !r.lease.settling() { // from here on, until the handler returns, it may be settled
		return ErrLeaseLost
	}
	e := r.settlement()
	e.To, e.Result = statements.StateDone, r.getResult()
	mine, err := r.settleTx(ctx, tx, r.worker, &e)
	if err != nil {
		return fmt.Errorf("settle task %d: %w", e.ID, err)
	}
	if !mine {
		return ErrLeaseLost
	}
	return nil
}
