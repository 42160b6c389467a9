package falldue

import (
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// TaskFilter selects tasks. Fields that are zero match all tasks. A task matches if all
// others match it.
type TaskFilter struct {
	Queue, Kind string
	// Key is the key of [EnqueueOptions], or that of a [TaskInfo].
	Key   string
	State State
	// Phase says more than State about tasks that are not finished. [Queue.Find] and the
	// changes of many tasks know it, and [Queue.Tasks] does not. No index has it: they look at
	// the tasks that match the other fields, 10,000 for a page, in the order of their ids. To
	// find the few of a million waiting tasks that run takes up to a hundred pages.
	Phase Phase
	// OlderThan matches tasks that were enqueued at least that long ago, NewerThan those
	// that were enqueued less than that long ago, by the database's clock: up to 36,500 days.
	OlderThan, NewerThan time.Duration
	// Match is matched with payloads as Config.Codec decodes them. A JSON object, such
	// as {"order": 42}, matches payloads that have its fields with the same values; of
	// arrays in it each element must be in the payload's. Any other text matches
	// payloads in which it occurs, without regard to white space outside of strings. It has
	// up to 64 KiB. [Queue.Find] and the changes of many tasks know it, and [Queue.Tasks]
	// does not. A task whose payload or result the codec cannot decode does not match, and is
	// counted: [Page].Undecodable, [BulkReport].Undecodable.
	Match string
	// After is an id. Only tasks with a greater id match: to list the next page,
	// set it to the id of the last task of the page before.
	After int64
	// Limit is the greatest number of tasks to return, up to 10,000. Defaults to
	// 100.
	Limit int
}

// maxMatch is the greatest length of TaskFilter.Match.
const maxMatch = 64 << 10

// validate checks all fields but Limit.
func (f TaskFilter) validate() error {
	if f.Queue != "" {
		if err := validName("queue", f.Queue); err != nil {
			return err
		}
	}
	if f.Kind != "" {
		if err := validName("kind", f.Kind); err != nil {
			return err
		}
	}
	if f.State != "" && !slices.Contains(states, f.State) {
		return invalid("state %.100q; allowed are %q", f.State, states)
	}
	if f.Phase != "" && !slices.Contains(phases, f.Phase) {
		return invalid("phase %.100q; allowed are %q", f.Phase, phases)
	}
	for name, age := range map[string]time.Duration{"OlderThan": f.OlderThan, "NewerThan": f.NewerThan} {
		if age < 0 || age > maxDelay {
			return invalid("%s %v; allowed are 0 to %s", name, age, longestDelay)
		}
	}
	if len(f.Match) > maxMatch {
		return invalid("Match has %d bytes; allowed are %d", len(f.Match), maxMatch)
	}
	return nil
}

// selects reports whether the filter has a field that leaves out tasks.
func (f TaskFilter) selects() bool {
	f.After, f.Limit = 0, 0
	return f != TaskFilter{}
}

// stored returns the part of the filter that the database knows, but for the phase.
func (f TaskFilter) stored() store.Filter {
	return store.Filter{
		Queue: f.Queue, Kind: f.Kind, Key: storable.KeyAgain(f.Key), State: string(f.State),
		Older: f.OlderThan, Newer: f.NewerThan, After: f.After, Limit: f.Limit,
	}
}

// narrowed returns the condition of the database that all tasks of a phase meet.
func (p Phase) narrowed() statements.Phase {
	switch p {
	case PhaseRunning:
		return statements.PhaseRunning
	case PhaseScheduled:
		return statements.PhaseScheduled
	case PhaseSnoozed:
		return statements.PhaseSnoozed
	}
	return statements.PhaseUnfinished
}
