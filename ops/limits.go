package ops

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/store"
)

// Limit is a limit that live workers apply, with its state.
type Limit struct {
	// Owner is the kind or the queue of the limit, such as kind mail, and Text the limit as the code makes it, such as
	// AtMost(20).
	Owner, Text string
	// PerKey reports whether each task key, or each queue that a pattern matches, has its own limit. If so, the fields
	// below are zero.
	PerKey bool
	// Most is how many tasks the limit admits, and Room is how many more it admits now. Wait is the time until it
	// has room again, or 0 if it has room or the time is unknown.
	Most, Room int
	Wait       time.Duration
	// Tasks has the IDs of the tasks that count now, as far as they are known.
	Tasks []int64

	keyed store.Limit // the limit, if HasKeys
}

// Taken returns how much of Most is taken.
func (l Limit) Taken() int { return max(l.Most-l.Room, 0) }

// HasKeys reports whether [Ops.FullestKeys] can list keys of the limit: the limit is per key, and no pattern names its
// queue.
func (l Limit) HasKeys() bool { return l.keyed.PerKey }

// Full reports whether the limit admits no task now.
func (l Limit) Full() bool { return !l.PerKey && l.Room <= 0 }

// Limits returns the limits that the live workers of a list of [Ops.Workers] apply, ordered by owner, with the tasks that
// count now. Limits per key count each key separately: [Ops.FullestKeys] lists the keys, and [Ops.Why] has the count of a task's key.
func (o *Ops) Limits(ctx context.Context, workers []Worker) ([]Limit, error) {
	owners := map[string]string{} // by the names of limits
	var limits []store.Limit
	add := func(owner string, list []store.Limit) {
		for _, l := range list {
			if _, known := owners[l.Name]; !known {
				owners[l.Name] = owner
				limits = append(limits, l)
			}
		}
	}
	for _, w := range workers {
		if !w.Live() {
			continue
		}
		for name, q := range w.Queues {
			add("queue "+name, q.limits)
		}
		for name, k := range w.Kinds {
			add("kind "+name, k.limits)
		}
	}
	var list []Limit
	var asked []store.Limit
	for _, l := range limits {
		if owner := owners[l.Name]; pattern.Is(owner) {
			list = append(list, Limit{Owner: owner, Text: l.Text, PerKey: true})
		} else if l.PerKey {
			list = append(list, Limit{Owner: owner, Text: l.Text, PerKey: true, keyed: l})
		} else {
			asked = append(asked, l)
		}
	}
	states, err := o.store.LimitStates(ctx, asked)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		list = append(list, Limit{Owner: owners[s.Name], Text: s.Text, Most: s.Most, Room: max(s.Room, 0), Wait: s.Wait, Tasks: s.Taken})
	}
	slices.SortFunc(list, func(a, b Limit) int { return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Text, b.Text)) })
	return list, nil
}

// KeyLimit is the state of a limit per key for one key.
type KeyLimit struct {
	// Key is the task key or, if the limit counts by a part, that part, such as tenant=42. [Filter] takes both.
	Key string
	// Most, Room, Wait and Tasks are as in [Limit].
	Most, Room int
	Wait       time.Duration
	Tasks      []int64
}

// Taken returns how much of Most is taken.
func (l KeyLimit) Taken() int { return max(l.Most-l.Room, 0) }

// FullestKeys returns up to most keys of a limit that [Ops.Limits] returned: the keys with the most tasks that count now,
// the fullest first. It reads up to 10,000 permits of the limit, and bounded reports whether there may be more. It returns
// no keys unless [Limit.HasKeys].
func (o *Ops) FullestKeys(ctx context.Context, l Limit, most int) (keys []KeyLimit, bounded bool, err error) {
	if !l.HasKeys() {
		return nil, false, nil
	}
	states, bounded, err := o.store.KeyStates(ctx, l.keyed)
	if err != nil {
		return nil, false, err
	}
	for key, s := range states {
		if l.keyed.Part != "" {
			key = falldue.KeyOf(l.keyed.Part, key)
		}
		if k := (KeyLimit{Key: key, Most: s.Most, Room: max(s.Room, 0), Wait: s.Wait, Tasks: s.Taken}); k.Taken() > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b KeyLimit) int {
		return cmp.Or(cmp.Compare(b.Taken(), a.Taken()), cmp.Compare(a.Key, b.Key))
	})
	return keys[:min(len(keys), most)], bounded, nil
}

// limitState is a limit of a task, and what the limit admits now.
type limitState struct {
	store.LimitState
	Owner string
}

// limitStates returns the limits of each of some tasks. It reads each limit once.
func (o *Ops) limitStates(ctx context.Context, now snapshot, tasks ...*falldue.TaskInfo) ([][]limitState, error) {
	of := make([][]overdue.Limit, len(tasks))
	limits := map[string]store.Limit{}
	for i, t := range tasks {
		of[i] = now.limitsOf(t.Queue, laneOfTask(*t))
		for _, l := range of[i] {
			limits[l.Name] = l.Limit
		}
	}
	states, err := o.store.LimitStates(ctx, slices.Collect(maps.Values(limits)))
	if err != nil {
		return nil, err
	}
	byName := map[string]store.LimitState{}
	for _, s := range states {
		byName[s.Name] = s
	}
	list := make([][]limitState, len(tasks))
	for i := range of {
		for _, l := range of[i] {
			list[i] = append(list[i], limitState{byName[l.Name], l.Owner})
		}
	}
	return list, nil
}
