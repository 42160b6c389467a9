package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/words"
)

// Unique has the settings of a new task's unique key. The hash of the key is Entry.Unique.
type Unique struct {
	Scope    UniqueScope
	For      time.Duration // of UniqueFor
	Conflict UniqueConflict
}

// wait returns the microseconds for which a key is taken even if the task ends before.
func (u Unique) wait() int64 {
	if u.Scope == UniqueFor {
		return u.For.Microseconds()
	}
	return 0
}

// UniqueScope is the time for which a task holds its unique key.
type UniqueScope int

// The scopes.
const (
	WhileUnfinished UniqueScope = iota
	WhileWaiting                // until the task is claimed
	UniqueFor                   // for a time, even if the task ends before
)

// UniqueConflict is the way to handle a new task if another task holds its unique key.
type UniqueConflict int

// The ways to handle a conflict.
const (
	ConflictSkip    UniqueConflict = iota // do not store the new task
	ConflictFail                          // return an [ExistsError]
	ConflictReplace                       // replace the payload and the time of a waiting holder
)

// Receipt is the result of storing an entry.
type Receipt struct {
	ID      int64
	Existed bool
}

// ExistsError means that a task holds the unique key of another one.
type ExistsError struct{ ID int64 }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("falldue: task exists: task %d has the same unique key", e.ID)
}

// EnqueueUnique is [Store.Enqueue] for entries that may be unique. An entry with a hash in Unique
// is unique, with the settings in uniques at the same index. No hash occurs twice.
func (s *Store) EnqueueUnique(ctx context.Context, tx Tx, entries []Entry, uniques []Unique) ([]Receipt, error) {
	if tx != nil {
		e := s.newUniqueEnqueue(unprepared{tx}, entries, uniques)
		e.within = true
		err := e.run(ctx, nil)
		return e.receipts, s.explain(err)
	}
	if len(entries) == 1 && entries[0].Unique != "" && statements.StoresUnique(s.server) {
		var e *uniqueEnqueue
		err := s.write(ctx, func() error {
			e = s.newUniqueEnqueue(each{s}, entries, uniques)
			e.alone = true
			return e.run(ctx, nil)
		})
		return e.receipts, err
	}
	// Most tasks that exist are found without a transaction. The holders that are read here
	// are checked again when keys are taken.
	found, err := reading(ctx, s, func(x runner) (map[string]statements.Holder, error) {
		return s.newUniqueEnqueue(x, entries, uniques).holders(ctx)
	})
	if err != nil {
		return nil, err
	}
	if e := s.newUniqueEnqueue(nil, entries, uniques); e.answer(found) {
		return e.receipts, e.exists
	}
	return inTx(ctx, s, func(x runner) ([]Receipt, error) {
		e := s.newUniqueEnqueue(x, entries, uniques)
		err := e.run(ctx, found)
		found = nil // too old for another try
		return e.receipts, err
	})
}

// uniqueEnqueue stores unique entries and others in one transaction.
type uniqueEnqueue struct {
	*Store
	x        runner
	within   bool // a caller's transaction
	alone    bool // each statement is a transaction
	entries  []Entry
	uniques  []Unique
	left     []int // the entries that have no receipt yet
	receipts []Receipt
	taken    []statements.UniqueKey // with the tasks that were stored for them
	replaced bool
	exists   error // an [ExistsError]
}

func (s *Store) newUniqueEnqueue(x runner, entries []Entry, uniques []Unique) *uniqueEnqueue {
	e := &uniqueEnqueue{Store: s, x: x, entries: entries, uniques: uniques, receipts: make([]Receipt, len(entries)), left: make([]int, len(entries))}
	for i := range entries {
		e.left[i] = i
	}
	return e
}

// maxTurns limits how often an enqueue reads the holders of keys. From the second turn on the
// rows of the keys are locked, so two turns are usually enough.
const maxTurns = 10

// run stores the entries. found has the holders of their keys, if they have been read.
func (e *uniqueEnqueue) run(ctx context.Context, found map[string]statements.Holder) (err error) {
	for turn := 0; len(e.left) > 0; turn++ {
		if turn == maxTurns {
			return fmt.Errorf("falldue: %s kept changing while being read; try again", words.Count(int64(len(e.left)), "unique key"))
		}
		if turn > 0 && !e.alone {
			found, err = e.lockedHolders(ctx)
		} else if turn > 0 || found == nil {
			found, err = e.holders(ctx)
		}
		if err != nil {
			return err
		}
		if err := e.turn(ctx, found); err != nil {
			return err
		}
	}
	if e.replaced && e.notifies(e.x) {
		return e.notifyWithin(ctx, e.x, len(e.entries), func(i int) string { return e.entries[i].Queue })
	}
	return nil
}

// turn stores the entries that are left and have free keys. If others take a key in the meantime,
// its entry is left again.
func (e *uniqueEnqueue) turn(ctx context.Context, found map[string]statements.Holder) error {
	var free, waiting, replace, later []int
	for _, i := range e.left {
		h, u := found[e.entries[i].Unique], e.uniques[i]
		switch {
		case !e.holds(h, u):
			free = append(free, i)
		case u.Conflict == ConflictFail:
			return cmp.Or(e.withdrawAll(ctx), error(&ExistsError{h.TaskID}))
		case u.Conflict == ConflictReplace && h.Waiting != 0:
			replace = append(replace, i)
		default:
			e.receipts[i] = Receipt{h.TaskID, true}
			if e.within && u.Scope == WhileWaiting {
				waiting = append(waiting, i)
			}
		}
	}
	started, err := e.holdWaiting(ctx, waiting)
	if err != nil {
		return err
	}
	free = append(free, started...)
	if len(free) > 0 {
		// Free keys come first. A caller's transaction cannot undo a replacement if another
		// entry then loses its key and must fail.
		replace, later = nil, replace
	}
	for _, i := range replace {
		ok, err := e.replaceWaiting(ctx, i, found[e.entries[i].Unique])
		if err != nil {
			return err
		}
		if !ok {
			free = append(free, i)
		}
	}
	slices.Sort(free)
	e.left = later
	if statements.StoresUnique(e.server) && !slices.ContainsFunc(free, func(i int) bool { return e.entries[i].Unique == "" }) {
		return e.storeUnique(ctx, free, found)
	}
	if err := e.store(ctx, free); err != nil {
		return err
	}
	return e.takeKeys(ctx, free, found)
}

// holds reports whether the holder of a key keeps the new task from being stored.
func (e *uniqueEnqueue) holds(h statements.Holder, u Unique) bool {
	switch {
	case h.Token == 0:
		return false
	case u.Conflict == ConflictReplace && h.Unfinished != 0 && h.Waiting == 0:
		return false // the holder runs, so it is too late for another payload
	case u.Scope == UniqueFor:
		return h.Until > h.Now
	case u.Scope == WhileWaiting:
		return h.Waiting != 0
	}
	return h.Unfinished != 0
}

// answer reports whether there is nothing to write: all tasks exist already, or one exists although
// its entry has ConflictFail.
func (e *uniqueEnqueue) answer(found map[string]statements.Holder) bool {
	all := true
	for i, entry := range e.entries {
		h, u := found[entry.Unique], e.uniques[i]
		if !e.holds(h, u) || u.Conflict == ConflictReplace {
			all = false
			continue
		}
		if u.Conflict == ConflictFail {
			e.receipts, e.exists = nil, &ExistsError{h.TaskID}
			return true
		}
		e.receipts[i] = Receipt{h.TaskID, true}
	}
	return all
}

// holders reads the holders of the keys of the entries that are left.
func (e *uniqueEnqueue) holders(ctx context.Context) (map[string]statements.Holder, error) {
	found := map[string]statements.Holder{}
	err := e.eachKey(e.keys(e.left), func(rows []statements.Row) error {
		return e.x.query(ctx, e.batch("holders", len(rows), statements.Holders), nil, rows, func(r row) error {
			var h statements.Holder
			err := statements.HolderColumns.Scan(r, &h)
			found[h.Hash] = h
			return err
		})
	})
	return found, err
}

// keys returns the keys of entries, sorted: all transactions take them in one order.
func (e *uniqueEnqueue) keys(entries []int) (keys []string) {
	for _, i := range entries {
		if hash := e.entries[i].Unique; hash != "" {
			keys = append(keys, hash)
		}
	}
	slices.Sort(keys)
	return keys
}

// eachKey calls f for batches of keys.
func (e *uniqueEnqueue) eachKey(keys []string, f func(rows []statements.Row) error) error {
	for list := range slices.Chunk(keys, MaxBatch) {
		if err := f(statements.HashColumns.Rows(len(list), func(i int) *string { return &list[i] })); err != nil {
			return err
		}
	}
	return nil
}

// lockedHolders is holders with the rows of the keys locked. In a transaction that only reads
// rows that were committed when it began, the holders may be older than the locked rows. Then a
// newer task has taken the key, and counts as existing.
func (e *uniqueEnqueue) lockedHolders(ctx context.Context) (map[string]statements.Holder, error) {
	var locked []statements.UniqueKey
	err := e.eachKey(e.keys(e.left), func(rows []statements.Row) error {
		return e.x.query(ctx, e.batch("lock keys", len(rows), statements.LockKeys), nil, rows, func(r row) error {
			locked = append(locked, statements.UniqueKey{})
			return statements.UniqueKeyColumns.Scan(r, &locked[len(locked)-1])
		})
	})
	if err != nil {
		return nil, err
	}
	found, err := e.holders(ctx)
	for _, k := range locked {
		if found[k.Hash].UniqueKey != k {
			found[k.Hash] = statements.Holder{UniqueKey: k, Until: math.MaxInt64, Unfinished: 1, Waiting: 1}
		}
	}
	return found, err
}

// holdWaiting prevents claims of waiting holders before the caller's transaction ends, so
// that their runs see its writes. It returns the entries whose holders have been claimed in
// the meantime.
func (e *uniqueEnqueue) holdWaiting(ctx context.Context, entries []int) (started []int, err error) {
	for list := range slices.Chunk(entries, MaxBatch) {
		rows := statements.IDColumns.Rows(len(list), func(i int) *Key { return &Key{TaskID: e.receipts[list[i]].ID} })
		ids, err := int64s(ctx, e.x, e.batch("hold waiting", len(list), statements.HoldWaiting), nil, rows)
		if err != nil {
			return nil, err
		}
		held := SetOf(ids)
		for _, i := range list {
			if !held[e.receipts[i].ID] {
				started = append(started, i)
			}
		}
	}
	return started, nil
}

// replaceWaiting replaces the payload, the metadata, the key and the time of the holder of an entry's key. It reports
// false if the holder has been claimed in the meantime.
func (e *uniqueEnqueue) replaceWaiting(ctx context.Context, i int, h statements.Holder) (bool, error) {
	entry := &e.entries[i]
	values := statements.Values{"id": h.TaskID, "fence": h.Fence, "at": nil, "delay": entry.Delay, "key": entry.Key, "payload": entry.Payload, "metadata": nil}
	if entry.At.Valid {
		values["at"] = entry.At.V
	}
	if entry.Metadata.Valid {
		values["metadata"] = entry.Metadata.V
	}
	result, err := e.x.exec(ctx, e.fixed("replace waiting", statements.ReplaceWaiting), values, nil)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	if err != nil || n == 0 {
		return false, err
	}
	e.receipts[i], e.replaced = Receipt{h.TaskID, true}, true
	return true, nil
}

func (e *uniqueEnqueue) store(ctx context.Context, entries []int) error {
	list := make([]Entry, len(entries))
	for n, i := range entries {
		list[n] = e.entries[i]
	}
	ids, err := e.insert(ctx, e.x, list)
	if err != nil {
		return err
	}
	for n, i := range entries {
		e.receipts[i] = Receipt{ID: ids[n]}
	}
	return nil
}

// takeKeys gives keys to tasks that were just stored. If others have taken a key in the
// meantime, takeKeys withdraws the task, and its entry is left.
func (e *uniqueEnqueue) takeKeys(ctx context.Context, entries []int, found map[string]statements.Holder) error {
	byHash := map[string]int{}
	var keys []statements.TakenKey
	for _, i := range entries {
		hash := e.entries[i].Unique
		if hash == "" {
			continue
		}
		byHash[hash] = i
		keys = append(keys, statements.TakenKey{Hash: hash, TaskID: e.receipts[i].ID, Was: found[hash].Token, Wait: e.uniques[i].wait()})
	}
	token := newToken()
	taken, err := e.Store.takeKeys(ctx, e.x, token, keys)
	if err != nil {
		return err
	}
	var lost []Key
	for hash, i := range byHash {
		if id := e.receipts[i].ID; taken[hash] {
			e.taken = append(e.taken, statements.UniqueKey{Hash: hash, Token: token, TaskID: id})
		} else {
			e.left, lost = append(e.left, i), append(lost, Key{TaskID: id})
		}
	}
	slices.Sort(e.left)
	return e.withdraw(ctx, lost)
}
