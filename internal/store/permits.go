package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
)

// heldBy returns the names of the limits whose permits a claim of a task may hold until it ends. The
// permits of rates do not depend on the end.
func heldBy(queue, kind, key string) (names []string) {
	for _, owner := range []string{"kind " + kind, "queue " + queue} {
		for _, form := range []LimitForm{Running, Sequence} {
			names = append(names, LimitName(owner, form, 0, false, ""))
			if key != "" {
				names = append(names, LimitName(owner, form, 0, true, "")+key)
			}
			for part, value := range storable.Parts(key) {
				names = append(names, LimitName(owner, form, 0, true, part)+value)
			}
		}
	}
	return names
}

// keepPermits keeps the permits of tasks whose claims are ended, for as long as their leases
// would have lasted: their handlers run until their workers notice the end. See [Store.FreePermits].
func (s *Store) keepPermits(ctx context.Context, x runner, ended []statements.AllowedTask) error {
	leases, names := map[Key]int64{}, map[string]bool{}
	for _, t := range ended {
		if t.Worker != "" && t.Lease > 0 {
			leases[t.Key] = t.Lease
			for _, name := range heldBy(t.Queue, t.Kind, t.TaskKey) {
				names[name] = true
			}
		}
	}
	return s.eachPermit(ctx, x, names, func(p statements.TakenPermit) error {
		lease, ended := leases[p.Key]
		if !ended {
			return nil
		}
		values := statements.Values{"permit": p.ID, "id": p.TaskID, "fence": p.Fence, "token": -newToken(), "wait": lease}
		_, err := x.exec(ctx, s.fixed("keep permit", statements.KeepPermit), values, nil)
		return err
	})
}

// carryPermits lets the permits of a task, which waits in its place in a sequence, name the task's next fence.
func (s *Store) carryPermits(ctx context.Context, x runner, t statements.AllowedTask) error {
	names := map[string]bool{}
	for _, name := range heldBy(t.Queue, t.Kind, t.TaskKey) {
		names[name] = true
	}
	return s.eachPermit(ctx, x, names, func(p statements.TakenPermit) error {
		if p.Key != t.Key {
			return nil
		}
		// A claim that has read the permit before does not get it, by its token.
		values := statements.Values{"permit": p.ID, "id": p.TaskID, "fence": p.Fence, "next": statements.NextFence(p.Fence), "token": s.rivals.token()}
		_, err := x.exec(ctx, s.fixed("carry permit", statements.CarryPermit), values, nil)
		return err
	})
}

// FreePermits frees the permits that were kept for claims, up to MaxBatch: their handlers have
// ended.
func (s *Store) FreePermits(ctx context.Context, claims []*Claim) error {
	ended, names := map[Key]bool{}, map[string]bool{}
	for _, c := range claims {
		ended[Key{TaskID: c.ID, Fence: c.Fence}] = true
		for _, l := range c.Limits {
			if !l.Form.Timed() {
				names[l.Name] = true
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		return struct{}{}, s.eachPermit(ctx, x, names, func(p statements.TakenPermit) error {
			if !ended[p.Key] {
				return nil
			}
			values := statements.Values{"permit": p.ID, "id": p.TaskID, "fence": p.Fence}
			_, err := x.exec(ctx, s.fixed("free permit", statements.FreePermit), values, nil)
			return err
		})
	})
	return err
}

// eachPermit calls f with the permits of limits that name tasks, in the order in which claims take
// them.
func (s *Store) eachPermit(ctx context.Context, x runner, names map[string]bool, f func(statements.TakenPermit) error) error {
	var list []statements.TakenPermit
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(names)), MaxBatch) {
		rows := statements.LimitColumns.Rows(len(batch), func(i int) *string { return &batch[i] })
		err := x.query(ctx, s.batch("permits of", len(batch), statements.PermitsOf), nil, rows, func(r row) error {
			list = append(list, statements.TakenPermit{})
			return statements.TakenPermitColumns.Scan(r, &list[len(list)-1])
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(list, func(a, b statements.TakenPermit) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range list {
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

// DropPermits reads up to MaxBatch permits after one, and deletes the permits that have been free for keep. It
// returns the last permit that it read, or 0 at the end, and the number of deleted permits. Claims make the permits
// that they need again.
func (s *Store) DropPermits(ctx context.Context, after int64, keep time.Duration) (last int64, dropped int, err error) {
	values := statements.Values{"after": after, "keep": keep.Microseconds(), "limit": MaxBatch}
	var page []statements.PagedPermit
	err = s.read(ctx, s.fixed("permit page", statements.PermitPage), values, func() { page = nil }, func(r row) error {
		page = append(page, statements.PagedPermit{})
		return statements.PagedPermitColumns.Scan(r, &page[len(page)-1])
	})
	if err != nil {
		return after, 0, err
	}
	var free []*Key
	for _, p := range page {
		if p.Free != 0 {
			free = append(free, &Key{TaskID: p.ID})
		}
	}
	if len(free) > 0 {
		rows := statements.IDColumns.Rows(len(free), func(i int) *Key { return free[i] })
		_, err = inTx(ctx, s, func(x runner) (struct{}, error) {
			_, err := x.exec(ctx, s.batch("drop permits", len(free), statements.DropPermits), values, rows)
			return struct{}{}, err
		})
	}
	if len(page) == MaxBatch {
		last = page[len(page)-1].ID
	}
	if err != nil { // the next call continues after this page nevertheless
		return last, 0, err
	}
	return last, len(free), nil
}
