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

// Applied has the limits that some workers apply to a lane, all of them the same. Workers of two releases may differ,
// and a task waits for a limit only if each of the workers has a limit that does not admit it.
type Applied struct {
	Workers []string
	Limits  []Limit
}

// AppendLimits adds a worker to list, with its limits of a queue and a kind that apply to a lane.
func AppendLimits(list []Applied, worker, queue string, at store.Lane, ofQueue, ofKind []store.Limit) []Applied {
	var limits []Limit
	add := func(owner string, some []store.Limit) {
		for _, l := range some {
			if of, applies := l.Of(at.Key); applies {
				limits = append(limits, Limit{of, owner})
			}
		}
	}
	add("queue "+queue, ofQueue)
	add("kind "+at.Kind, ofKind)
	if n := slices.IndexFunc(list, func(a Applied) bool { return slices.Equal(a.Limits, limits) }); n >= 0 {
		list[n].Workers = append(list[n].Workers, worker)
		return list
	}
	return append(list, Applied{[]string{worker}, limits})
}

// SetDelays sets the Delay of lanes whose limits, as limitsOf returns them, admit no task.
func (f Finder) SetDelays(ctx context.Context, lanes []Lane, limitsOf func(queue string, at store.Lane) []Applied) error {
	of, unread := make([][]Applied, len(lanes)), map[store.Limit]bool{}
	for i, l := range lanes {
		of[i] = limitsOf(l.Queue, l.Lane)
		for _, a := range of[i] {
			for _, limit := range a.Limits {
				unread[limit.Limit] = true
			}
		}
	}
	states := map[store.Limit]store.LimitState{}
	for n := 0; n < readings && len(unread) > 0; n++ {
		if n > 0 {
			if err := retry.Pause(ctx, betweenLimits); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(slices.Collect(maps.Keys(unread)), limitsAtOnce) {
			list, err := f.LimitStates(ctx, part)
			if err != nil {
				return err
			}
			for _, s := range list {
				if states[s.Limit] = s; s.Room <= 0 {
					delete(unread, s.Limit)
				}
			}
		}
	}
	for i := range lanes {
		lanes[i].Delay = delayOf(lanes[i].Lane, of[i], states)
	}
	return nil
}

func delayOf(at store.Lane, workers []Applied, states map[store.Limit]store.LimitState) (d Delay) {
	for _, a := range workers {
		admitted := true
		for _, l := range a.Limits {
			s := states[l.Limit]
			if s.Admits(at) {
				continue
			}
			admitted = false
			if text := l.Text + " of " + l.Owner; d.HaltedBy == 0 && s.Halted {
				d = Delay{text, s.Taken[0]}
			} else if d.Limit == "" {
				d.Limit = text
			}
		}
		if admitted {
			return Delay{}
		}
	}
	return d
}
