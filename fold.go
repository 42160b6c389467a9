package falldue

import (
	"context"
	"fmt"

	"github.com/falldue/falldue/internal/store"
)

// folded are tasks of which no two have one unique key.
type folded struct {
	pending
	place []int // of each task of the call in the pending ones
	first []bool
}

// fold leaves out tasks whose unique keys those before them have.
func (p *pending) fold() (*folded, error) {
	f := &folded{pending: pending{policies: p.policies}, place: make([]int, len(p.entries)), first: make([]bool, len(p.entries))}
	places := map[string]int{}
	for i, e := range p.entries {
		at, known := places[e.Unique]
		if e.Unique == "" || !known {
			at, f.first[i] = len(f.entries), true
			f.entries, f.uniques = append(f.entries, e), append(f.uniques, p.uniques[i])
			places[e.Unique] = at
		} else {
			switch p.uniques[i].Conflict {
			case store.ConflictFail:
				return nil, &ExistsError{}
			case store.ConflictReplace:
				first := &f.entries[at]
				first.Payload, first.Meta, first.Key, first.At, first.Delay = e.Payload, e.Meta, e.Key, e.At, e.Delay
				f.uniques[at].Conflict = store.ConflictReplace
			}
		}
		f.place[i] = at
	}
	return f, nil
}

// insert stores tasks of which some are unique.
func (p *pending) insert(ctx context.Context, tx Tx, insert enqueueFunc) ([]Receipt, error) {
	f, err := p.fold()
	var ids []int64
	if err == nil {
		ids, err = insert(ctx, tx, &f.pending)
	}
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	receipts := make([]Receipt, len(p.entries))
	for i, at := range f.place {
		receipts[i] = Receipt{ids[at], f.existed[at] || !f.first[i]}
	}
	return receipts, nil
}

// enqueueUnique stores tasks of which some are unique, and no two have one unique key.
func enqueueUnique(ctx context.Context, s *store.Store, tx Tx, tasks *pending) ([]int64, error) {
	receipts, err := s.EnqueueUnique(ctx, tx, tasks.entries, tasks.uniques)
	if err != nil {
		return nil, existsError(err)
	}
	ids := make([]int64, len(receipts))
	tasks.existed = make([]bool, len(receipts))
	for i, r := range receipts {
		ids[i], tasks.existed[i] = r.ID, r.Existed
	}
	return ids, nil
}

// stored returns the entries that may be due since they were stored, or replaced others.
func (p *pending) stored() []store.Entry {
	if p.existed == nil {
		return p.entries
	}
	var list []store.Entry
	for i, e := range p.entries {
		if !p.existed[i] || p.uniques[i].Conflict == store.ConflictReplace {
			list = append(list, e)
		}
	}
	return list
}
