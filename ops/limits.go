package ops

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/store"
)

// Limit describes a limit that live workers apply, and its current state.
type Limit struct {
	// Owner is the kind or the queue of the limit, such as kind mail, and Text is the Go code that makes the limit, such
	// as AtMost(20).
	Owner, Text string
	// Definitions are the different definitions of the limit, if workers define it differently, as during a deploy.
	// Without are the workers that have the kind or the queue, but not the limit. Text and the fields below describe the
	// definition that admits the most tasks, which is in effect if all workers have the limit.
	Definitions []LimitDefinition
	Without     []string
	// PerKey reports whether each task key, or each queue that a pattern matches, has its own limit. In this case, the
	// fields below are zero.
	PerKey bool
	// Most is how many tasks the limit admits, and Room is how many more tasks it admits now. Wait is the time until the
	// limit admits another task, or 0 if it admits one now or the time is unknown.
	Most, Room int
	Wait       time.Duration
	// Tasks has the IDs of the tasks that count toward the limit now, as far as these IDs are known.
	Tasks []int64

	keyed store.Limit // the limit, if HasKeys
}

// LimitDefinition is a limit as some workers define it.
type LimitDefinition struct {
	Text    string // the Go code that makes the limit
	Workers []string
	Room    int // how many more tasks the limit admits, or 0 if each key or queue has its own limit
}

// Differences describes how workers define the limit, or returns "" if they agree.
func (l Limit) Differences() string {
	return strings.TrimPrefix(differences(l.Definitions, l.Without), "; ")
}

// Taken returns how many tasks count toward the limit now: Most - Room, or 0 if that is negative.
func (l Limit) Taken() int { return max(l.Most-l.Room, 0) }

// HasKeys reports whether [Ops.FullestKeys] can list keys of the limit: the limit is per key, and no pattern names its
// queue.
func (l Limit) HasKeys() bool { return l.keyed.PerKey }

// Full reports whether the limit admits no task now, on any worker.
func (l Limit) Full() bool { return !l.PerKey && l.Room <= 0 && len(l.Without) == 0 }

// Limits returns the limits that live workers apply, ordered by owner, with the tasks that count now. workers is a list
// from [Ops.Workers]. Limits per key count each key separately: [Ops.FullestKeys] lists the keys, and [Ops.Why] returns
// the count for a task's key.
func (o *Ops) Limits(ctx context.Context, workers []Worker) ([]Limit, error) {
	applied := map[string][]overdue.Applied{} // by owner
	add := func(worker, owner string, limits []store.Limit) {
		a := overdue.Applied{Workers: []string{worker}}
		for _, l := range limits {
			a.Limits = append(a.Limits, overdue.Limit{Limit: l, Owner: owner})
		}
		applied[owner] = append(applied[owner], a)
	}
	for _, w := range workers {
		if !w.Live() {
			continue
		}
		for name, q := range w.Queues {
			add(w.ID, "queue "+name, q.limits)
		}
		for name, k := range w.Kinds {
			add(w.ID, "kind "+name, k.limits)
		}
	}
	var asked []store.Limit
	states := map[store.Limit]store.LimitState{}
	for owner, list := range applied {
		for _, a := range list {
			for _, l := range a.Limits {
				if _, known := states[l.Limit]; known {
					continue
				}
				states[l.Limit] = store.LimitState{Limit: l.Limit}
				if !l.PerKey && !pattern.Is(owner) {
					asked = append(asked, l.Limit)
				}
			}
		}
	}
	read, err := o.store.LimitStates(ctx, asked)
	if err != nil {
		return nil, err
	}
	for _, s := range read {
		states[s.Limit] = s
	}
	var list []Limit
	for owner, of := range applied {
		for _, g := range (taskLimits{of, states}).groups() {
			s := g.widest()
			l := Limit{Owner: owner, Text: s.Text, PerKey: s.PerKey || pattern.Is(owner)}
			if g.differs() {
				l.Definitions, l.Without = g.definitions, g.without
			}
			switch {
			case pattern.Is(owner):
			case s.PerKey:
				l.keyed = s.Limit
			default:
				l.Most, l.Room, l.Wait, l.Tasks = s.Most, max(s.Room, 0), s.Wait, s.Taken
			}
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b Limit) int { return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Text, b.Text)) })
	return list, nil
}

// KeyLimit is the state of a limit per key for one key.
type KeyLimit struct {
	// Key is the task key. If the limit counts by a part of keys, Key is that part with its value, such as tenant=42.
	// [Filter].Key accepts either.
	Key string
	// Most, Room, Wait and Tasks are as in [Limit].
	Most, Room int
	Wait       time.Duration
	Tasks      []int64
}

// Taken returns how many tasks count toward the limit now: Most - Room, or 0 if that is negative.
func (l KeyLimit) Taken() int { return max(l.Most-l.Room, 0) }

// FullestKeys returns up to most keys of a limit that [Ops.Limits] returned: the keys for which the most tasks count
// now, the fullest first. It reads up to 10,000 permits of the limit (a permit is the right of a task to run), and
// bounded reports whether there may be more permits. FullestKeys returns no keys if [Limit.HasKeys] is false.
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

// taskLimits are the limits of a task, with their states, on the workers that may run the task.
type taskLimits struct {
	applied []overdue.Applied
	states  map[store.Limit]store.LimitState
}

// heldFrom reports whether no worker admits the task.
func (l taskLimits) heldFrom(id int64) bool {
	return !slices.ContainsFunc(l.applied, func(a overdue.Applied) bool {
		return !slices.ContainsFunc(a.Limits, func(of overdue.Limit) bool { return !l.states[of.Limit].AdmitsTask(id) })
	})
}

// groups returns the definitions of each limit, in the order of the workers.
func (l taskLimits) groups() (list []limitGroup) {
	for _, a := range l.applied {
		for _, of := range a.Limits {
			n := slices.IndexFunc(list, func(g limitGroup) bool { return g.states[0].Name == of.Name })
			if n < 0 {
				n = len(list)
				list = append(list, limitGroup{owner: of.Owner})
			}
			list[n].add(l.states[of.Limit], a.Workers)
		}
	}
	for n := range list {
		for _, a := range l.applied {
			if !slices.ContainsFunc(a.Limits, func(of overdue.Limit) bool { return of.Name == list[n].states[0].Name }) {
				list[n].without = append(list[n].without, a.Workers...)
			}
		}
	}
	return list
}

// limitGroup has the definitions of a limit, with their states, and the workers that do not have it.
type limitGroup struct {
	owner       string
	states      []store.LimitState
	definitions []LimitDefinition
	without     []string
}

func (g *limitGroup) add(s store.LimitState, workers []string) {
	n := slices.IndexFunc(g.states, func(other store.LimitState) bool { return other.Limit == s.Limit })
	if n < 0 {
		n = len(g.states)
		g.states = append(g.states, s)
		g.definitions = append(g.definitions, LimitDefinition{Text: s.Text, Room: max(s.Room, 0)})
	}
	g.definitions[n].Workers = append(g.definitions[n].Workers, workers...)
}

// differs reports whether the workers define the limit differently.
func (g limitGroup) differs() bool { return len(g.definitions) > 1 || len(g.without) > 0 }

// widest returns the definition that admits the most tasks. While releases differ, it is in effect.
func (g limitGroup) widest() store.LimitState {
	return slices.MaxFunc(g.states, func(a, b store.LimitState) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.Most, b.Most), cmp.Compare(b.Text, a.Text))
	})
}

// limitStates returns the limits of each of some tasks. It reads each limit once.
func (o *Ops) limitStates(ctx context.Context, now snapshot, tasks ...*falldue.TaskInfo) ([]taskLimits, error) {
	limits, states := map[store.Limit]bool{}, map[store.Limit]store.LimitState{}
	list := make([]taskLimits, len(tasks))
	for i, t := range tasks {
		list[i] = taskLimits{now.limitsOf(t.Queue, laneOfTask(*t)), states}
		for _, a := range list[i].applied {
			for _, l := range a.Limits {
				limits[l.Limit] = true
			}
		}
	}
	read, err := o.store.LimitStates(ctx, slices.Collect(maps.Keys(limits)))
	for _, s := range read {
		states[s.Limit] = s
	}
	return list, err
}
