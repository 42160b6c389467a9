package ops

import (
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/options"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/sqlgen"
)

// Filter selects the tasks that match all of its fields. A zero field matches all tasks.
type Filter struct {
	Queue, Kind string
	// Key is the task key, as in [falldue.EnqueueOptions] or in a [falldue.TaskInfo]. A key with parts ([falldue.KeyOf])
	// also matches the keys that have these parts. Parts are not indexed: the database reads all tasks that match the
	// other fields.
	Key   string
	State falldue.State
	// Phase selects tasks in a phase, which is more precise than State for unfinished tasks. Phases are not indexed: to
	// fill a page, a call examines up to 10,000 unfinished tasks that match the other fields. For
	// [falldue.PhaseRunning], [falldue.PhaseScheduled] and [falldue.PhaseSnoozed], it examines only tasks in that
	// phase.
	Phase falldue.Phase
	// OlderThan matches tasks that were enqueued at least this long ago, and NewerThan tasks that were enqueued less
	// than this long ago, by the database's clock. Each is at most 36,500 days.
	OlderThan, NewerThan time.Duration
	// Match is matched with payloads as Config.Codec decodes them. A JSON object, such as {"order": 42}, matches payloads
	// that have its fields with the same values. If a value is an array, the payload's array must contain each of its
	// elements. Any other text matches payloads in which the text occurs, without regard to white space outside of
	// strings. Match has at most 64 KiB. Payloads are not indexed: see Phase. A task whose payload or result the codec
	// cannot decode does not match, and is counted in [Page].Undecodable or [BulkReport].Undecodable.
	Match string
}

const (
	// maxDelay is the longest delay of a task.
	maxDelay = sqlgen.MaxDelay * time.Second
	// maxMatch is the greatest length of Filter.Match.
	maxMatch = 64 << 10
)

// longestDelay is what errors call maxDelay: 36,500 days.
var longestDelay = words.Count(int64(maxDelay/(24*time.Hour)), "day")

var states = []falldue.State{falldue.StateBlocked, falldue.StateOpen, falldue.StateSnoozed, falldue.StateDone, falldue.StateDead, falldue.StateCancelled}

var phases = []falldue.Phase{
	falldue.PhaseBlocked, falldue.PhaseRunning, falldue.PhaseDue, falldue.PhaseScheduled, falldue.PhaseBackingOff, falldue.PhaseSnoozed,
	falldue.PhasePaused, falldue.PhaseLimited, falldue.PhaseUnknownPolicy, falldue.PhaseDone, falldue.PhaseDead, falldue.PhaseCancelled,
}

// Err returns why the filter is invalid, or nil. The error wraps [falldue.ErrInvalid].
func (f Filter) Err() error {
	for what, name := range map[string]string{"queue": f.Queue, "kind": f.Kind} {
		if name == "" {
			continue
		}
		if err := storable.CheckName(what, name); err != nil {
			return invalid("%w", err)
		}
	}
	if f.State != "" && !slices.Contains(states, f.State) {
		return invalid("state %.100q: must be one of %q", f.State, states)
	}
	if f.Phase != "" && !slices.Contains(phases, f.Phase) {
		return invalid("phase %.100q: must be one of %q", f.Phase, phases)
	}
	for name, age := range map[string]time.Duration{"OlderThan": f.OlderThan, "NewerThan": f.NewerThan} {
		if age < 0 || age > maxDelay {
			return invalid("%s %v: must be 0 to %s", name, age, longestDelay)
		}
	}
	if len(f.Match) > maxMatch {
		return invalid("Match has %d bytes: must have at most %d", len(f.Match), maxMatch)
	}
	return nil
}

// stored returns the part of the filter that the database knows, but for the phase.
func (f Filter) stored() store.Filter {
	return store.Filter{
		Queue: f.Queue, Kind: f.Kind, Key: storable.KeyAgain(f.Key), State: string(f.State), Older: f.OlderThan, Newer: f.NewerThan,
	}
}

// narrowed returns the condition of the database that all tasks of a phase meet.
func narrowed(p falldue.Phase) statements.Phase {
	switch p {
	case falldue.PhaseRunning:
		return statements.PhaseRunning
	case falldue.PhaseScheduled:
		return statements.PhaseScheduled
	case falldue.PhaseSnoozed:
		return statements.PhaseSnoozed
	}
	return statements.PhaseUnfinished
}

// invalid returns an error that wraps [falldue.ErrInvalid].
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{falldue.ErrInvalid}, args...)...)
}

// oneOf returns the options that were passed to a call, which takes one at most.
func oneOf[O any](list []O) (O, error) {
	o, err := options.One(list)
	if err != nil {
		err = invalid("%w", err)
	}
	return o, err
}
