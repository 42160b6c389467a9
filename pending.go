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

// folded is middleware that stores one task for each unique key of a call.
func folded(next enqueueFunc) enqueueFunc {
	return func(ctx context.Context, tx Tx, tasks *pending) ([]Receipt, error) {
		some, place, err := tasks.fold()
		if err != nil {
			return nil, err
		}
		stored, err := next(ctx, tx, some)
		if err != nil {
			return nil, err
		}
		receipts := make([]Receipt, len(place))
		for i, at := range place {
			receipts[i] = stored[at]
			stored[at].Existed = true // for those that follow with its key
		}
		return receipts, nil
	}
}

// fold returns the tasks without those whose unique keys earlier ones have, and the place
// of each task among them.
func (p *pending) fold() (some *pending, place []int, _ error) {
	some, place = &pending{policies: p.policies}, make([]int, len(p.entries))
	places := map[string]int{} // by unique key
	for i, e := range p.entries {
		at, known := places[e.Unique]
		if e.Unique == "" || !known {
			at = len(some.entries)
			some.entries, some.uniques = append(some.entries, e), append(some.uniques, p.uniques[i])
			places[e.Unique] = at
		} else {
			switch p.uniques[i].Conflict {
			case store.ConflictFail:
				return nil, nil, &ExistsError{}
			case store.ConflictReplace:
				first := &some.entries[at]
				first.Payload, first.Metadata, first.Key, first.At, first.Delay = e.Payload, e.Metadata, e.Key, e.At, e.Delay
				some.uniques[at].Conflict = store.ConflictReplace
			}
		}
		place[i] = at
	}
	return some, place, nil
}

// enqueueUnique stores tasks of which some are unique, and no two have one unique key.
func enqueueUnique(ctx context.Context, s *store.Store, tx Tx, tasks *pending) ([]Receipt, error) {
	stored, err := s.EnqueueUnique(ctx, tx, tasks.entries, tasks.uniques)
	if err != nil {
		return nil, existsError(err)
	}
	receipts := make([]Receipt, len(stored))
	for i, r := range stored {
		receipts[i] = Receipt(r)
	}
	return receipts, nil
}

// stored returns the entries that may be due since they were stored, or replaced others.
func (p *pending) stored(receipts []Receipt) []store.Entry {
	if p.uniques == nil {
		return p.entries
	}
	var list []store.Entry
	for i, e := range p.entries {
		if !receipts[i].Existed || p.uniques[i].Conflict == store.ConflictReplace {
			list = append(list, e)
		}
	}
	return list
}
