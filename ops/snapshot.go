package ops

import (
	"context"
	"maps"
	"slices"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/store"
)

// snapshot decides when tasks run, together with the tasks themselves and the permits of limits.
type snapshot struct {
	Policies
	pauses  []Pause
	workers []Worker         // none if this user cannot read them
	unread  error            // why not
	self    store.WorkerInfo // of a worker of the queue, if it ran one
}

// snapshot reads the policies, the pauses and the workers, with the policies of keys.
func (o *Ops) snapshot(ctx context.Context, keys ...string) (s snapshot, err error) {
	changes, err := o.store.Changes(ctx, store.AllChanges)
	if err != nil {
		return s, err
	}
	s.workers, s.unread = o.Workers(ctx)
	s.self, s.pauses = o.inside.WorkerConfig().Info, pausesIn(changes)
	s.Policies = newPolicies(o.codePolicies(s.self), overridesIn(changes), s.workers)
	err = s.readOwn(ctx, o.store, keys)
	return s, err
}

// codePolicies returns the policies of WithPolicies, and of the kinds that the queue handles.
func (o *Ops) codePolicies(self store.WorkerInfo) map[string]backoff.Policy {
	policies := map[string]backoff.Policy{}
	for kind, k := range self.Kinds {
		policies[kind] = backoff.ParseDeferred(k.Policy)
	}
	maps.Copy(policies, o.policies)
	return policies
}

// paused reports whether a pause is in effect for a task.
func (s snapshot) paused(t falldue.TaskInfo) bool {
	return slices.ContainsFunc(s.pauses, func(p Pause) bool { return p.selects(t) })
}

// limitsOf returns the limits of a lane's tasks on the live workers that may run the tasks. If there are none, it
// returns the limits that the queue would apply.
func (s snapshot) limitsOf(queue string, at store.Lane) (list []overdue.Applied) {
	for _, w := range s.workers {
		if w.Live() && w.Handles(queue, at.Kind) {
			on, _ := w.Queue(queue)
			list = overdue.AppendLimits(list, w.ID, queue, at, on.limits, w.Kinds[at.Kind].limits)
		}
	}
	if len(list) == 0 {
		on, _ := s.self.Queue(queue)
		list = overdue.AppendLimits(list, "", queue, at, on.Limits, s.self.Kinds[at.Kind].Limits)
	}
	return list
}
