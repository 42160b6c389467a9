package falldue

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// TaskMeta describes a task to its handler.
type TaskMeta struct {
	// ID is the id of the task, as in its [Receipt].
	ID int64
	// Kind and Queue are the names of the task's kind and queue.
	Kind, Queue string
	// Attempt is the number of this attempt, from 1. A run that ended with a snooze
	// is not counted.
	Attempt int
	// MaxAttempts is the number of attempts the task has in all; 0 is no limit.
	MaxAttempts int
	// Fence goes up with each claim of the task, including claims that ended with a snooze
	// or were lost. Each run of a task has a higher fence than all runs before it.
	// It can serve as a fencing token for effects outside the database.
	Fence int64
	// Priority is the priority of the task. Lower numbers run first.
	Priority int
	// Key is the task's key as it is stored, see [EnqueueOptions], or "".
	Key string
	// Meta is what [EnqueueOptions].Meta, or middleware, has said of the task when it was
	// enqueued. It is nil for a task without meta. Do not change it.
	Meta map[string]string
	// CreatedAt is when the task was enqueued, DueAt when it fell due for this run, both by
	// the database's clock.
	CreatedAt, DueAt time.Time
	// StartedAt is when this run began, about by the database's clock: StartedAt.Sub(DueAt)
	// is how long the task has waited for a worker. It is zero for a run that did not begin.
	StartedAt time.Time
}

// maxMeta is the greatest size of a task's meta as JSON, in bytes. It has room for the trace
// context and the baggage of W3C, which are 512 and 8,192 bytes at most.
const maxMeta = 10 << 10

// storedMeta returns the JSON to store for the meta of a task with marks of falldue's own,
// NULL if there is neither.
func storedMeta(meta map[string]string, marks []string) (stored sql.Null[string], err error) {
	for name := range meta {
		if prefix, reserved := store.ReservedMetadata(name); reserved {
			return stored, invalid("meta %.100q; allowed are names that do not begin with %q", name, prefix)
		}
	}
	if meta = store.Marked(meta, marks); len(meta) == 0 {
		return stored, nil
	}
	text, err := storable.JSON(meta)
	if err == nil && len(text) > maxMeta {
		err = fmt.Errorf("%d bytes as JSON; allowed are %d", len(text), maxMeta)
	}
	if err != nil {
		return stored, invalid("meta: %w", err)
	}
	return store.NotNull(string(text)), nil
}
