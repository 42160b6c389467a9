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
	"github.com/falldue/falldue/internal/words"
)

// newToken returns a token that no other row of a unique key has had.
func newToken() int64 { return 1 + rand.Int64N(math.MaxInt64) }

// takeKeys gives unique keys to tasks, and returns those that it could take.
func (s *Store) takeKeys(ctx context.Context, x runner, token int64, keys []statements.TakenKey) (taken map[string]bool, err error) {
	taken = map[string]bool{}
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
	return taken, err
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

// releaseKeys frees the unique keys of tasks that are deleted before they are done. A done task
// keeps its key for the time of [UniqueFor]: it must not be done again.
func (s *Store) releaseKeys(ctx context.Context, x runner, deleted []statements.AllowedTask) error {
	var keys []statements.UniqueKey
	for _, t := range deleted {
		if t.Unique != "" && t.State != statements.StateDone {
			keys = append(keys, statements.UniqueKey{Hash: t.Unique, TaskID: t.TaskID})
		}
	}
	slices.SortFunc(keys, func(a, b statements.UniqueKey) int { return cmp.Compare(a.Hash, b.Hash) })
	return inBatches(s, keys, func(list []statements.UniqueKey) error {
		rows := statements.ReleasedKeyColumns.Rows(len(list), func(i int) *statements.UniqueKey { return &list[i] })
		_, err := x.exec(ctx, s.batch("release keys", len(list), statements.ReleaseKeys), nil, rows)
		return err
	})
}

// EndKeyTime ends the time for which a unique key is held, and reports whether it had not ended.
func (s *Store) EndKeyTime(ctx context.Context, hash string) (bool, error) {
	return once(ctx, s, func(x runner) (bool, error) {
		result, err := x.exec(ctx, s.fixed("end key time", statements.EndKeyTime), statements.Values{"hash": hash}, nil)
		if err != nil {
			return false, err
		}
		n, err := result.RowsAffected()
		return n > 0, err
	})
}

// DropKeys reads up to MaxBatch unique keys after one, and deletes the keys that no task has held for keep. It
// returns the last key that it read, or "" at the end, and the number of deleted keys.
func (s *Store) DropKeys(ctx context.Context, after string, keep time.Duration) (last string, dropped int, err error) {
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
		return after, 0, err
	}
	if n < MaxBatch {
		last = ""
	}
	if len(free) > 0 {
		_, err = inTx(ctx, s, func(x runner) (struct{}, error) { return struct{}{}, s.dropKeys(ctx, x, free) })
	}
	if err != nil { // the next call continues after this page nevertheless
		return last, 0, err
	}
	return last, len(free), nil
}

// takeBack gives finished tasks their unique keys back, before the tasks are opened again. A task
// must not be opened if an unfinished task, or another one of the list, holds its key. takeBack
// returns these holders, by the ids of the tasks that must not be opened.
func (s *Store) takeBack(ctx context.Context, x runner, tasks []statements.AllowedTask) (exists map[int64]*ExistsError, err error) {
	exists = map[int64]*ExistsError{}
	ids := map[string][]int64{} // by key
	var entries []Entry
	for _, t := range tasks {
		if t.Unique == "" {
			continue
		}
		if ids[t.Unique] == nil {
			entries = append(entries, Entry{Unique: t.Unique})
		}
		ids[t.Unique] = append(ids[t.Unique], t.TaskID)
	}
	e := s.newUniqueEnqueue(x, entries, make([]Unique, len(entries)))
	for turn := 0; len(e.left) > 0; turn++ {
		if turn == maxTurns {
			return nil, fmt.Errorf("falldue: %s kept changing while being read; try again", words.Count(int64(len(e.left)), "unique key"))
		}
		found, err := e.holders(ctx)
		if err != nil {
			return nil, err
		}
		var keys []statements.TakenKey
		for _, i := range e.left {
			hash := entries[i].Unique
			h, list := found[hash], ids[hash]
			switch {
			case slices.Contains(list, h.TaskID):
				list = []int64{h.TaskID} // it is finished, and the key is its own
			case h.Unfinished != 0:
				refuse(exists, ids[hash], h.TaskID)
				continue
			}
			keys = append(keys, statements.TakenKey{Hash: hash, TaskID: list[0], Was: h.Token, Wait: max(h.Until-h.Now, 0)})
		}
		taken, err := s.takeKeys(ctx, x, newToken(), keys)
		if err != nil {
			return nil, err
		}
		e.left = nil
		for _, k := range keys {
			if !taken[k.Hash] {
				e.left = append(e.left, slices.IndexFunc(entries, func(e Entry) bool { return e.Unique == k.Hash }))
				continue
			}
			refuse(exists, ids[k.Hash], k.TaskID)
		}
	}
	return exists, nil
}

// refuse records that a task holds the key of others.
func refuse(exists map[int64]*ExistsError, tasks []int64, holder int64) {
	for _, id := range tasks {
		if id != holder {
			exists[id] = &ExistsError{holder}
		}
	}
}
