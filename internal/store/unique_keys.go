package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// takeKeys gives unique keys to tasks, and returns the token by which it has done so and
// those that it could take.
func (s *Store) takeKeys(ctx context.Context, x runner, keys []statements.TakenKey) (token int64, taken map[string]bool, err error) {
	token, taken = 1+rand.Int64N(math.MaxInt64), map[string]bool{}
	values := statements.Values{"token": token}
	// In one order, so that no two transactions wait for each other's rows.
	slices.SortFunc(keys, func(a, b statements.TakenKey) int { return cmp.Compare(a.Hash, b.Hash) })
	note := func(r row) error {
		var hash string
		err := statements.HashColumns.Scan(r, &hash)
		taken[hash] = true
		return err
	}
	err = inBatches(s, keys, func(list []statements.TakenKey) error {
		stmt := s.batch("take keys", len(list), statements.TakeKeys)
		rows := statements.TakenKeyColumns.Rows(len(list), func(i int) *statements.TakenKey { return &list[i] })
		if statements.ReturnsTakenKeys(s.server) {
			return x.query(ctx, stmt, values, rows, note)
		}
		if _, err := x.exec(ctx, stmt, values, rows); err != nil {
			return err
		}
		hashes := statements.HashColumns.Rows(len(list), func(i int) *string { return &list[i].Hash })
		return x.query(ctx, s.batch("keys of token", len(list), statements.KeysOfToken), values, hashes, note)
	})
	return token, taken, err
}

func (s *Store) dropKeys(ctx context.Context, x runner, keys []statements.UniqueKey) error {
	for list := range slices.Chunk(keys, MaxBatch) {
		rows := statements.DroppedKeyColumns.Rows(len(list), func(i int) *statements.UniqueKey { return &list[i] })
		if _, err := x.exec(ctx, s.batch("drop keys", len(list), statements.DropKeys), nil, rows); err != nil {
			return err
		}
	}
	return nil
}

// DropKeys deletes those of the next unique keys after one that nobody has held for keep,
// and returns the last one that it looked at, or "" after all. It looks at up to MaxBatch.
func (s *Store) DropKeys(ctx context.Context, after string, keep time.Duration) (last string, err error) {
	values := statements.Values{"after": after, "keep": keep.Microseconds(), "limit": MaxBatch}
	var free []statements.UniqueKey
	n := 0
	err = s.read(ctx, s.fixed("key page", statements.KeyPage), values, func() { free, n = nil, 0 }, func(r row) error {
		var k statements.PagedKey
		err := statements.PagedKeyColumns.Scan(r, &k)
		if last = k.Hash; k.Free != 0 {
			free = append(free, k.UniqueKey)
		}
		n++
		return err
	})
	if err != nil {
		return after, err
	}
	if len(free) > 0 {
		_, err = inTx(ctx, s, func(x runner) (struct{}, error) { return struct{}{}, s.dropKeys(ctx, x, free) })
	}
	if err != nil || n < MaxBatch {
		return "", err
	}
	return last, nil
}

// takeBack gives the unique key of a task that is dead or cancelled back to it, before it is
// opened again. Its error is an [ExistsError] if an unfinished task has the key, and a
// contention that the caller tries again if another transaction takes it now.
func (s *Store) takeBack(ctx context.Context, x runner, id int64) error {
	hash := ""
	err := x.query(ctx, s.fixed("key to revive", statements.KeyToRevive), statements.Values{"id": id}, nil, func(r row) error {
		return statements.HashColumns.Scan(r, &hash)
	})
	if err != nil || hash == "" {
		return err
	}
	e := s.newUniqueEnqueue(x, []Entry{{Unique: hash}}, []Unique{{}})
	for range maxTurns {
		found, err := e.holders(ctx)
		if err != nil {
			return err
		}
		h := found[hash]
		switch {
		case h.TaskID != id && h.Unfinished != 0:
			return &ExistsError{h.TaskID}
		case h.TaskID != id && h.Until > h.Now:
			return nil // the key is not the task's for that time, and need not be
		}
		_, taken, err := s.takeKeys(ctx, x, []statements.TakenKey{{Hash: hash, TaskID: id, Was: h.Token, Wait: max(h.Until-h.Now, 0)}})
		if err != nil || taken[hash] {
			return err
		}
	}
	return fmt.Errorf("falldue: the unique key of task %d changed each time it was read", id)
}
