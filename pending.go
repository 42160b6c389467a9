package falldue

import (
	"context"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// pending has tasks that are about to be stored.
type pending struct {
	entries  []store.Entry
	policies map[string]backoff.Policy // per-task policies by their keys, or nil
	uniques  []store.Unique            // how each entry with a unique key is unique, or nil
	flow     *store.Flow               // the dependencies of the tasks, or nil
}

// insert stores tasks in tx, or if tx is nil in a transaction of its own, and returns their
// receipts in the same order. No two tasks have one unique key.
func (q *Queue) insert(ctx context.Context, tx Tx, tasks *pending) (receipts []Receipt, err error) {
	if err := q.policies.StoreAll(ctx, tx, tasks.policies); err != nil {
		return nil, err
	}
	switch {
	case tasks.uniques != nil:
		receipts, err = q.insertUnique(ctx, tx, tasks)
	case tasks.flow != nil:
		receipts, err = receiptsOf(q.store.EnqueueFlow(ctx, tx, tasks.entries, *tasks.flow))
	default:
		receipts, err = receiptsOf(q.store.Enqueue(ctx, tx, tasks.entries))
	}
	if err == nil && tx == nil { // the end of tx is not known
		q.announce(tasks.stored(receipts))
	}
	return receipts, err
}

// insertUnique stores tasks. Some of them are unique.
func (q *Queue) insertUnique(ctx context.Context, tx Tx, tasks *pending) ([]Receipt, error) {
	stored, err := q.store.EnqueueUnique(ctx, tx, tasks.entries, tasks.uniques)
	if err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(stored))
	for i, r := range stored {
		receipts[i] = Receipt(r)
	}
	return receipts, nil
}

// stored returns the entries that are perhaps due, because they were stored or replaced others.
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

// receiptsOf returns the receipts of new tasks.
func receiptsOf(ids []int64, err error) ([]Receipt, error) {
	if err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(ids))
	for i, id := range ids {
		receipts[i].ID = id
	}
	return receipts, nil
}

// receiptsAt returns the receipts of tasks whose keys have places among the stored ones.
func receiptsAt(place []int, stored []Receipt) []Receipt {
	receipts := make([]Receipt, len(place))
	for i, at := range place {
		receipts[i] = stored[at]
		stored[at].Existed = true // for later tasks with the same key
	}
	return receipts
}
