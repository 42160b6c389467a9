package overdue

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

const (
	// limitsAtOnce is the number of limits whose permits one statement reads.
	limitsAtOnce = 500
	// readings is how often the permits of a limit with room are read. A busy limit has room for a moment
	// after each task.
	readings      = 5
	betweenLimits = 20 * time.Millisecond
)

// Delay is the limit that delays tasks.
type Delay struct {
	// Limit is the limit and its owner, such as "AtMost(20) of kind charge", or "" if the tasks wait
	// for a worker.
	Limit string
	// HaltedBy is a dead task that halts the sequence of the tasks, or of some of them, or 0.
	HaltedBy int64
}

// Limit is a limit of the tasks of a lane, and its owner, such as "kind charge".
type Limit struct {
	store.Limit
	Owner string
}

// AppendLimits appends to list the limits of a queue and a kind that apply to a lane and that list does
// not have.
func AppendLimits(list []Limit, queue string, at store.Lane, ofQueue, ofKind []store.Limit) []Limit {
	add := func(owner string, limits []store.Limit) {
		for _, l := range limits {
			of, applies := l.Of(at.Key)
			if applies && !slices.ContainsFunc(list, func(other Limit) bool { return other.Limit == of }) {
				list = append(list, Limit{of, owner})
			}
		}
	}
	add("queue "+queue, ofQueue)
	add("kind "+at.Kind, ofKind)
	return list
}

// SetDelays sets the Delay of lanes whose limits, as limitsOf returns them, admit no task.
func (f Finder) SetDelays(ctx context.Context, lanes []Lane, limitsOf func(queue string, at store.Lane) []Limit) error {
	of, unread := make([][]Limit, len(lanes)), map[string]store.Limit{}
	for i, l := range lanes {
		of[i] = limitsOf(l.Queue, l.Lane)
		for _, limit := range of[i] {
			unread[limit.Name] = limit.Limit
		}
	}
	states := map[string]store.LimitState{}
	for n := 0; n < readings && len(unread) > 0; n++ {
		if n > 0 {
			if err := retry.Pause(ctx, betweenLimits); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(slices.Collect(maps.Values(unread)), limitsAtOnce) {
			list, err := f.LimitStates(ctx, part)
			if err != nil {
				return err
			}
			for _, s := range list {
				if states[s.Name] = s; s.Room <= 0 {
					delete(unread, s.Name)
				}
			}
		}
	}
	for i := range lanes {
		lanes[i].Delay = delayOf(lanes[i].Lane, of[i], states)
	}
	return nil
}

func delayOf(at store.Lane, limits []Limit, states map[string]store.LimitState) (d Delay) {
	for _, l := range limits {
		s := states[l.Name]
		if s.Admits(at) {
			continue
		}
		if d.Limit == "" {
			d.Limit = l.Text + " of " + l.Owner
		}
		if s.Halted {
			return Delay{l.Text + " of " + l.Owner, s.Taken[0]}
		}
	}
	return d
}
