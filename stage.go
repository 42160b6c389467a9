package falldue

import (
	"context"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// stage takes part in an enqueue before its entries are stored: in the caller's
// transaction, where there is one, or else before the enqueue's own.
type stage interface {
	stage(ctx context.Context, tx Tx, list []pending) error
}

// pending is a task on its way into the table.
type pending struct {
	store.Entry
	policy *backoff.Policy // its own, whose key the entry has
}
