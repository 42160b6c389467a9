package falldue

import (
	"context"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
)

// pending has tasks that are about to be stored.
type pending struct {
	entries  []store.Entry
	policies map[string]backoff.Policy // the tasks' own policies by their keys, or nil
	uniques  []store.Unique            // how each entry with a unique key is unique, or nil
	flow     *store.Flow               // what runs after what, or nil
}

// enqueueFunc stores tasks in tx, or if tx is nil in a transaction of its own, and
// returns their receipts in the same order.
type enqueueFunc func(ctx context.Context, tx Tx, tasks *pending) ([]Receipt, error)

// A stage takes part in an enqueue before its tasks are stored.
type stage interface {
	// stage writes what the tasks need: in tx, the caller's transaction, or if tx
	// is nil in a transaction of its own before that of the enqueue. It may not lock
	// rows in tx that other transactions need. An error ends the enqueue.
	stage(ctx context.Context, tx Tx, tasks *pending) error
}

// policyStage stores the policies of tasks that have one of their own.
type policyStage struct{ policies *upkeep.PolicyStore }

func (s policyStage) stage(ctx context.Context, tx Tx, tasks *pending) error {
	return s.policies.StoreAll(ctx, tx, tasks.policies)
}

// inStages is middleware that runs stages before tasks are stored.
func inStages(list ...stage) func(enqueueFunc) enqueueFunc {
	return func(next enqueueFunc) enqueueFunc {
		return func(ctx context.Context, tx Tx, tasks *pending) ([]Receipt, error) {
			for _, s := range list {
				if err := s.stage(ctx, tx, tasks); err != nil {
					return nil, err
				}
			}
			return next(ctx, tx, tasks)
		}
	}
}
