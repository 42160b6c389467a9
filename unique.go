package falldue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/uniquekey"
)

// Unique makes a task unique ([EnqueueOptions]): while a task holds its unique key, no other task with that key is
// stored. A task with the zero value is not unique.
type Unique struct {
	// By selects the properties that tasks with equal unique keys have in common, in addition to
	// their kind: [ByArgs], [ByFields], [ByKind] or [ByKey]. Their queues, priorities and policies
	// do not matter.
	By UniqueBy
	// WhileWaiting lets a task hold its unique key only until a worker claims the task. A new task is then skipped only
	// because of a holder that runs later, and thus sees all writes before the enqueue. A task also holds its key while
	// it waits for a retry, a snooze, a start time or the end of a pause, unless another task took the key while it ran.
	// Defaults to false: a task holds its key until it is done, dead, cancelled or deleted. A new task may then be
	// skipped because of a running task that does not see the latest writes.
	//
	// Tasks with one key should have the same WhileWaiting: the new enqueue's value decides whether a running task still
	// holds the key.
	WhileWaiting bool
	// For lets a task hold its unique key for a time after its enqueue, 1 millisecond to 36,500 days, even if the task
	// ends earlier. Defaults to 0: no such time. Set only one of For and WhileWaiting.
	For time.Duration
	// OnConflict sets what happens to a new task if another task holds its key. Defaults to [ConflictSkip].
	OnConflict Conflict
}

// UniqueBy selects the properties that tasks with equal unique keys have in common, in
// addition to their kind. [ByArgs], [ByFields], [ByKind] and [ByKey] make one.
type UniqueBy struct{ by uniquekey.By }

// ByArgs makes tasks unique by their arguments, as encoding/json writes them.
func ByArgs() UniqueBy { return UniqueBy{uniquekey.By{Form: uniquekey.ByArgs}} }

// ByFields makes tasks unique by some fields of their arguments, which must be a JSON object. Pass the
// names that the JSON has, in any order. A field that is left out, for example because of omitempty,
// differs from a field that is null. A name that the JSON cannot have is an error: for example, a
// field of an embedded struct with a tag, or a name that two embedded structs share.
func ByFields(names ...string) UniqueBy {
	return UniqueBy{uniquekey.By{Form: uniquekey.ByFields, Fields: names}}
}

// ByKind makes tasks unique only by their kind.
func ByKind() UniqueBy { return UniqueBy{uniquekey.By{Form: uniquekey.ByKind}} }

// ByKey makes tasks unique by a text, which must not be empty. The text is unrelated to
// EnqueueOptions.Key.
func ByKey(key string) UniqueBy { return UniqueBy{uniquekey.By{Form: uniquekey.ByKey, Key: key}} }

// Conflict selects what happens to a new task if another task, the holder, holds its unique key.
type Conflict int

// The values of Conflict.
const (
	// ConflictSkip does not store the new task. The receipt has the ID of the holder.
	ConflictSkip Conflict = iota
	// ConflictFail returns an [ExistsError], and none of the call's tasks is stored.
	ConflictFail
	// ConflictReplace changes a holder that waits: the holder gets the payload, metadata, EnqueueOptions.Key and due
	// time of the new task, and keeps its ID, queue, priority, attempts and everything else. If the holder runs, the new
	// task is stored and takes the unique key. If the holder is finished, and the time of Unique.For has not passed, the
	// new task is skipped. In a sequence ([InOrder]), the new EnqueueOptions.Key and due time decide the holder's place.
	ConflictReplace
)

// ReleaseUnique releases a unique key before the time of Unique.For has passed, so that the next task with that key
// is stored. The key is the one that an enqueue with args and by would take. ReleaseUnique reports whether it has
// released the key. A task without For keeps its key: cancel or delete that task. The error wraps [ErrInvalid] for
// invalid values.
func (k Kind[A]) ReleaseUnique(ctx context.Context, q *Queue, args A, by UniqueBy) (bool, error) {
	if k.kind == nil {
		return false, invalid("the Kind is empty: make it with NewKind")
	}
	// With For the options are not zero, and By is needed.
	p := newParams(k.kind, args, []EnqueueOptions{{Unique: Unique{By: by, For: minUniqueFor}}})
	entry, err := q.entry(&p)
	if err != nil {
		return false, fmt.Errorf("release a unique key of kind %.100q: %w", k.name, err)
	}
	return q.store.EndKeyTime(ctx, entry.Unique)
}

// ErrExists is wrapped by [ExistsError].
var ErrExists = errors.New("falldue: the task exists")

// ExistsError is the error of an enqueue with [ConflictFail] if another task holds the unique key, and of [Queue.Retry]
// if another unfinished task holds the key. It wraps [ErrExists].
type ExistsError struct {
	// ID is the ID of the holder, or 0 if the holder would be an earlier task of the same call.
	ID int64
}

func (e *ExistsError) Error() string {
	if e.ID == 0 {
		return fmt.Sprintf("%v: an earlier task of the call has the same unique key", ErrExists)
	}
	return fmt.Sprintf("%v: task %d has the same unique key", ErrExists, e.ID)
}

// Unwrap returns [ErrExists].
func (e *ExistsError) Unwrap() error { return ErrExists }

// existsError replaces the store's error about unique keys in err with an error of this package.
func existsError(err error) error {
	if e, ok := errors.AsType[*store.ExistsError](err); ok {
		return &ExistsError{e.ID}
	}
	return err
}

// isSet reports whether any field is set.
func (u Unique) isSet() bool {
	return u.By.by.Form != uniquekey.ByNothing || u.WhileWaiting || u.For != 0 || u.OnConflict != ConflictSkip
}

// store returns how the store treats a task.
func (u Unique) store() store.Unique {
	scope := store.WhileUnfinished
	switch {
	case u.WhileWaiting:
		scope = store.WhileWaiting
	case u.For != 0:
		scope = store.UniqueFor
	}
	return store.Unique{Scope: scope, For: u.For, Conflict: store.UniqueConflict(u.OnConflict)}
}

const minUniqueFor = time.Millisecond

// hash returns the unique key of a task of a kind, or why there is none. payload is the JSON
// of args, as it is before a codec encodes it.
func (u Unique) hash(c Codec, kind string, args any, payload []byte) (string, error) {
	if u.OnConflict < ConflictSkip || u.OnConflict > ConflictReplace {
		return "", invalid("OnConflict %d: must be ConflictSkip, ConflictFail or ConflictReplace", u.OnConflict)
	}
	if u.For != 0 && (u.For < minUniqueFor || u.For > maxDelay) {
		return "", invalid("For %v: must be %v to %s", u.For, minUniqueFor, longestDelay)
	}
	if u.For != 0 && u.WhileWaiting {
		return "", invalid("For %v and WhileWaiting: set only one", u.For)
	}
	var secret func([]byte) []byte
	if c != nil {
		secret = c.Hash
	}
	key, err := u.By.by.Hash(kind, args, payload, secret)
	if err != nil {
		return "", invalid("%w", err)
	}
	return key, nil
}
