package falldue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Unique makes a task unique ([EnqueueOptions]): while a task holds its unique key, no other
// one with that key is stored. With the zero value, no two unfinished tasks of a kind have
// the same arguments.
type Unique struct {
	// By says what tasks have in common whose unique keys are equal, beside their kind.
	// Their queues, priorities and policies do not matter. Defaults to [ByArgs].
	By UniqueBy
	// Scope says until when a task holds its key. Tasks with one key should have one scope:
	// each new task goes by its own. Defaults to [WhileUnfinished].
	Scope UniqueScope
	// OnConflict says what happens to a new task whose key another one holds. Defaults to
	// [ConflictSkip].
	OnConflict Conflict
}

// UniqueBy is what tasks with equal unique keys have in common, beside their kind.
// [ByArgs], [ByFields], [ByKind] and [ByKey] make one.
type UniqueBy struct {
	form   uniqueForm
	fields []string
	key    string
}

type uniqueForm int

const (
	byArgs uniqueForm = iota
	byFields
	byKind
	byKey
)

// ByArgs makes tasks unique by their arguments, as encoding/json writes them.
func ByArgs() UniqueBy { return UniqueBy{} }

// ByFields makes tasks unique by some fields of their arguments, which are a JSON object.
// Names are those of the JSON; their order does not matter. A field that is left out, as by
// omitempty, differs from one that is null.
func ByFields(names ...string) UniqueBy { return UniqueBy{form: byFields, fields: names} }

// ByKind makes tasks unique by their kind alone.
func ByKind() UniqueBy { return UniqueBy{form: byKind} }

// ByKey makes tasks unique by a text, which is not empty. It has nothing to do with
// EnqueueOptions.Key.
func ByKey(key string) UniqueBy { return UniqueBy{form: byKey, key: key} }

// UniqueScope says until when a task holds its unique key. [WhileUnfinished],
// [WhileWaiting] and [UniqueFor] make one.
type UniqueScope struct {
	form store.UniqueScope
	d    time.Duration
}

// WhileUnfinished lets a task hold its unique key until it is done, dead, cancelled or
// deleted. A task that is skipped meanwhile may exist because of one that runs already, and
// that does not see what was written last; see [WhileWaiting].
func WhileUnfinished() UniqueScope { return UniqueScope{} }

// WhileWaiting lets a task hold its unique key until a worker claims it to run it, so that a
// task is skipped only if a later run sees what was written before its enqueue. A task that
// failed, was snoozed, is paused or is due later waits, unless another task has taken its
// key while it ran.
func WhileWaiting() UniqueScope { return UniqueScope{form: store.WhileWaiting} }

// UniqueFor lets a task hold its unique key for a time after its enqueue, 1 millisecond to
// 36,500 days, whatever becomes of the task.
func UniqueFor(d time.Duration) UniqueScope { return UniqueScope{store.UniqueFor, d} }

// Conflict says what happens to a new task whose unique key another one holds.
type Conflict int

// What may happen to it.
const (
	// ConflictSkip does not store the new task. The id of the holder is returned.
	ConflictSkip Conflict = iota
	// ConflictFail returns an [ExistsError], and none of the call's tasks is stored.
	ConflictFail
	// ConflictReplace gives the payload of the new task and the time at which it is due to
	// a holder that waits, which keeps its id, queue, priority, attempts and all else. If
	// the holder runs, the new task is stored and takes the key, in any scope. If the
	// holder is finished and [UniqueFor] lasts, the new task is skipped.
	ConflictReplace
)

// Receipt is what became of a task that was to be enqueued.
type Receipt struct {
	// ID is the id of the task, or of the task that holds its unique key. The latter may
	// have been deleted since, if its key is held by [UniqueFor].
	ID int64
	// Existed reports whether another task held the unique key, so that no task was stored.
	Existed bool
}

// ErrExists is wrapped by [ExistsError].
var ErrExists = errors.New("falldue: the task exists")

// ExistsError is the error of an enqueue with [ConflictFail] if another task holds the
// unique key, and of [Queue.Retry] if an unfinished one does. It wraps [ErrExists].
type ExistsError struct {
	// ID is the id of the holder, or 0 if an earlier task of the same call would be it.
	ID int64
}

func (e *ExistsError) Error() string {
	if e.ID == 0 {
		return fmt.Sprintf("%v: an earlier one of the call has the same unique key", ErrExists)
	}
	return fmt.Sprintf("%v: task %d has the same unique key", ErrExists, e.ID)
}

// Unwrap returns [ErrExists].
func (e *ExistsError) Unwrap() error { return ErrExists }

// existsError returns err with an ExistsError in place of that of the store.
func existsError(err error) error {
	if e, ok := errors.AsType[*store.ExistsError](err); ok {
		return &ExistsError{e.ID}
	}
	return err
}

// EnqueueUnique is like [Kind.Enqueue], and reports whether the task existed. It is unique
// by opts.Unique, or by the zero [Unique] if that is nil.
func (k Kind[A]) EnqueueUnique(ctx context.Context, q *Queue, args A, opts *EnqueueOptions) (Receipt, error) {
	return firstReceipt(q.EnqueueUnique(ctx, k.Params(args, opts)))
}

// EnqueueUniqueTx is like [Kind.EnqueueTx], and reports whether the task existed, as
// [Kind.EnqueueUnique] does. See [Queue.EnqueueUniqueTx] for who waits for tx.
func (k Kind[A]) EnqueueUniqueTx(ctx context.Context, q *Queue, tx Tx, args A, opts *EnqueueOptions) (Receipt, error) {
	return firstReceipt(q.EnqueueUniqueTx(ctx, tx, k.Params(args, opts)))
}

func firstReceipt(list []Receipt, err error) (Receipt, error) {
	if err != nil {
		return Receipt{}, err
	}
	return list[0], nil
}

// EnqueueUnique is like [Queue.EnqueueMany], and reports which of the tasks existed. Each is
// unique by its options, or by the zero [Unique] if these say nothing. Of several tasks of
// the call with one unique key only the first is stored; with [ConflictReplace] it has the
// payload and the time of the last.
func (q *Queue) EnqueueUnique(ctx context.Context, params ...EnqueueParams) ([]Receipt, error) {
	return q.enqueueUnique(ctx, nil, params)
}

// EnqueueUniqueTx is like [Queue.EnqueueUnique] but stores the tasks inside tx, as
// [Kind.EnqueueTx] does.
//
// If the task is stored, other enqueues with its unique key wait until tx ends, and so do
// enqueues that find the key's holder finished. With [WhileWaiting] the holder does not
// start before tx ends, and sees what tx has written. After an [ExistsError] tx can go on:
// none of the tasks is in it. After any other error roll back.
func (q *Queue) EnqueueUniqueTx(ctx context.Context, tx Tx, params ...EnqueueParams) ([]Receipt, error) {
	if err := checkTx(tx); err != nil {
		return nil, err
	}
	return q.enqueueUnique(ctx, tx, params)
}

func (q *Queue) enqueueUnique(ctx context.Context, tx Tx, params []EnqueueParams) ([]Receipt, error) {
	tasks, err := q.pending(len(params), func(i int) EnqueueParams {
		p := params[i]
		if p.opts.Unique == nil {
			p.opts.Unique = &Unique{}
		}
		return p
	})
	if err != nil || len(params) == 0 {
		return nil, err
	}
	return q.enqueueFolded(ctx, tx, tasks)
}

// enqueueFolded stores tasks of which some are unique.
func (q *Queue) enqueueFolded(ctx context.Context, tx Tx, tasks *pending) ([]Receipt, error) {
	f, err := tasks.fold()
	var ids []int64
	if err == nil {
		ids, err = q.insert(ctx, tx, &f.pending)
	}
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	receipts := make([]Receipt, len(tasks.entries))
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

// store returns how the store is to treat a task.
func (u *Unique) store() store.Unique {
	return store.Unique{Scope: u.Scope.form, For: u.Scope.d, Conflict: store.UniqueConflict(u.OnConflict)}
}

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
				first.Payload, first.At, first.Delay = e.Payload, e.At, e.Delay
				f.uniques[at].Conflict = store.ConflictReplace
			}
		}
		f.place[i] = at
	}
	return f, nil
}
