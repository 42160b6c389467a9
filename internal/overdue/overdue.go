// Package overdue finds tasks that have been due for more than a minute, and the limits that delay
// them.
package overdue

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

const (
	// After is the time after which a due task is overdue, by default.
	After = time.Minute
	// Most is the number up to which the tasks of a kind in a queue are counted.
	Most = 1000
	// lanesAtOnce is the number of lanes whose tasks are counted together.
	lanesAtOnce = 32
	// UnknownDelay stands for the delay of a lane whose policy is not known.
	UnknownDelay = 24 * time.Hour
)

// Group is the overdue tasks of a kind in a queue that wait for the same limit, or for a worker.
type Group struct {
	Queue, Kind string
	Delay
	// Tasks is the number of these tasks, counted up to Most.
	Tasks int
	// DueSince is when the first of them fell due, by the database's clock.
	DueSince time.Time
}

// Lane is a lane whose first task is overdue.
type Lane struct {
	Queue string
	store.Lane
	Wait   time.Duration // the delay of its policy
	Anchor int64         // of the first task
	Delay
}

// Due returns when the first task of the lane fell due.
func (l Lane) Due() time.Time { return store.Time(l.Anchor).Add(l.Wait) }

// Tables has the statements of a Finder.
type Tables interface {
	LiveWorkers(ctx context.Context) ([]store.WorkerInfo, error)
	LimitStates(ctx context.Context, limits []store.Limit) ([]store.LimitState, error)
	Queues(ctx context.Context) ([]string, error)
	// Heads returns the lanes of queues. With an error, the lanes of some queues may be missing.
	Heads(ctx context.Context, queues []string) (map[string][]store.Head, error)
	// CountSince counts the tasks of lanes, as [store.Store.CountSince] does.
	CountSince(ctx context.Context, lanes []store.LaneSince) ([]int, error)
}

// Finder finds overdue tasks in all queues, through the lanes that have them.
type Finder struct {
	Tables
	// Delays returns a function for the delays of a queue's lanes. The function returns false for lanes to
	// leave out. The delay of a lane whose tasks never failed does not matter.
	Delays func(ctx context.Context, queue string, heads []store.Head) (func(store.Lane) (time.Duration, bool), error)
	// OlderThan is the time after which a due task is overdue. Defaults to After.
	OlderThan time.Duration
}

func (f Finder) after() time.Duration { return cmp.Or(f.OlderThan, After) }

// Find lists the lanes whose first tasks are overdue. With an error, the list may lack the lanes of some
// queues: if a queue cannot be swept, Find continues without it.
func (f Finder) Find(ctx context.Context) (list []Lane, err error) {
	queues, err := f.Queues(ctx)
	heads, failed := f.Heads(ctx, queues)
	err = errors.Join(err, failed)
	for _, queue := range slices.Sorted(maps.Keys(heads)) {
		delays, failed := f.Delays(ctx, queue, heads[queue])
		if err = errors.Join(err, failed); failed == nil {
			list = f.appendOverdue(list, queue, heads[queue], delays)
		}
	}
	return list, err
}

func (f Finder) appendOverdue(list []Lane, queue string, heads []store.Head, delays func(store.Lane) (time.Duration, bool)) []Lane {
	for _, h := range heads {
		delay, wanted := delays(h.Lane)
		if !h.Delayed() {
			delay = 0
		}
		if wanted && h.Corrupt == nil && store.Duration(h.Now-max(h.Anchor, 0))-delay >= f.after() {
			list = append(list, Lane{Queue: queue, Lane: h.Lane, Wait: delay, Anchor: h.Anchor})
		}
	}
	return list
}

// Count counts the overdue tasks of lanes, by queue, kind and the limit that delays them. With an error, the list may
// lack groups, and numbers may be too small.
func (f Finder) Count(ctx context.Context, lanes []Lane) (list []Group, err error) {
	slices.SortStableFunc(lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Limit, b.Limit))
	})
	var of []int // the groups of the lanes
	for _, l := range lanes {
		if n := len(list); n == 0 || list[n-1].Queue != l.Queue || list[n-1].Kind != l.Kind || list[n-1].Limit != l.Limit {
			list = append(list, Group{Queue: l.Queue, Kind: l.Kind, Delay: Delay{Limit: l.Limit}, DueSince: l.Due()})
		}
		last := &list[len(list)-1]
		if due := l.Due(); due.Before(last.DueSince) {
			last.DueSince = due
		}
		last.HaltedBy = cmp.Or(last.HaltedBy, l.HaltedBy)
		of = append(of, len(list)-1)
	}
	for i := 0; i < len(lanes); {
		var part []store.LaneSince
		var counted []int
		for ; i < len(lanes) && len(part) < lanesAtOnce; i++ {
			if l, left := lanes[i], Most-list[of[i]].Tasks; left > 0 {
				at := store.LaneSince{Wait: (l.Wait + f.after()).Microseconds(), Most: left}
				at.Queue, at.Lane = l.Queue, l.Lane
				part, counted = append(part, at), append(counted, of[i])
			}
		}
		var numbers []int
		if numbers, err = f.CountSince(ctx, part); err != nil {
			break
		}
		for n, g := range counted {
			list[g].Tasks = min(list[g].Tasks+numbers[n], Most)
		}
	}
	// Workers may have taken the tasks of a lane since Find.
	return slices.DeleteFunc(list, func(g Group) bool { return g.Tasks == 0 }), err
}

// tables reads a store.
type tables struct {
	*store.Store
	finder *store.LaneFinder // which remembers how to sweep queues fast
	queues []string
	read   time.Time // when queues were read
}

// In returns the tables of a store.
func In(s *store.Store) Tables { return &tables{Store: s, finder: s.NewLaneFinder()} }

const (
	// queuePause is the pause for each queue that was read, since each costs a statement.
	queuePause = time.Second / 2
	// pageLanes is how many lanes one statement finds.
	pageLanes = 5000
)

func (t *tables) Queues(ctx context.Context) ([]string, error) {
	if !t.read.IsZero() && time.Since(t.read) < time.Duration(len(t.queues))*queuePause {
		return t.queues, nil
	}
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	queues, err := t.Store.Queues(ctx)
	if err == nil {
		t.queues, t.read = queues, time.Now()
	}
	return queues, err
}

func (t *tables) Heads(ctx context.Context, queues []string) (map[string][]store.Head, error) {
	heads := map[string][]store.Head{}
	for part := range slices.Chunk(queues, store.MaxBatch) {
		places := make([]store.Place, len(part))
		for i, queue := range part {
			places[i] = store.FirstPlace(queue)
		}
		for len(places) > 0 {
			found, rest, err := t.find(ctx, places)
			for _, f := range found {
				heads[f.Queue] = append(heads[f.Queue], f.Head)
			}
			if err != nil {
				return heads, err
			}
			places = rest
		}
	}
	return heads, nil
}

func (t *tables) find(ctx context.Context, places []store.Place) ([]store.Found, []store.Place, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	return t.finder.Find(ctx, places, pageLanes)
}

func (t *tables) CountSince(ctx context.Context, lanes []store.LaneSince) ([]int, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return t.Store.CountSince(ctx, lanes)
}

func (t *tables) LiveWorkers(ctx context.Context) ([]store.WorkerInfo, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return t.Store.LiveWorkers(ctx)
}

func (t *tables) LimitStates(ctx context.Context, limits []store.Limit) ([]store.LimitState, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return t.Store.LimitStates(ctx, limits)
}
