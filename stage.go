package falldue

import (
	"context"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// A stage takes part in an enqueue before its entries are stored.
type stage interface {
	// stage writes what the tasks need: in tx, the caller's transaction, or if tx
	// is nil in a transaction of its own before that of the enqueue. An error ends
	// the enqueue.
	stage(ctx context.Context, tx Tx, list []pending) error
}

// pending is a task that is about to be stored.
type pending struct {
	store.Entry
	policy *backoff.Policy // the task's own; Entry.Policy is its key
}
