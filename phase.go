package falldue

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// Phase says what a task waits for, if it does, more exactly than its [State].
type Phase string

// The phases of tasks that are not finished. Those of finished tasks are PhaseDone,
// PhaseDead and PhaseCancelled.
const (
	// PhaseBlocked tasks run after other tasks, which have not all ended; see package flow.
	PhaseBlocked Phase = Phase(Blocked)
	// PhaseRunning tasks have been claimed, and their lease lasts.
	PhaseRunning Phase = "running"
	// PhaseDue tasks wait for a worker only.
	PhaseDue Phase = "due"
	// PhaseScheduled tasks have never been tried, and their time has not come.
	PhaseScheduled Phase = "scheduled"
	// PhaseBackingOff tasks have failed, or their worker died, and they wait for the delay of
	// their policy.
	PhaseBackingOff Phase = "backing off"
	// PhaseSnoozed tasks wait because their handler said so, by [Snooze] or [RetryAfter].
	PhaseSnoozed Phase = "snoozed"
	// PhasePaused tasks are due, and a pause holds them back.
	PhasePaused Phase = "paused"
	// PhaseLimited tasks are due, and a limit admits no more now.
	PhaseLimited Phase = "limited"
	// PhaseTried tasks have failed or been lost, and their policy is not known, so that they
	// may be due or backing off: no live worker handles their kind, and neither does this
	// process.
	PhaseTried Phase = "tried"

	PhaseDone      Phase = Phase(Done)
	PhaseDead      Phase = Phase(Dead)
	PhaseCancelled Phase = Phase(Cancelled)
)

var phases = []Phase{
	PhaseBlocked, PhaseRunning, PhaseDue, PhaseScheduled, PhaseBackingOff, PhaseSnoozed, PhasePaused, PhaseLimited, PhaseTried, PhaseDone, PhaseDead, PhaseCancelled,
}

// Phases returns the phases of tasks that were just read, in their order. It reads the
// policies of tasks that have their own, the policies and limits that live workers announce,
// pauses and policies that are set ([Queue.SetPolicy]), and if any task is due the permits of
// limits. It knows the policies and the
// limits of the kinds that this process handles as well.
func (q *Queue) Phases(ctx context.Context, tasks []TaskInfo) ([]Phase, error) {
	handlers, _ := q.handlers()
	p := phaser{q: q, handlers: handlers}
	list := make([]Phase, len(tasks))
	if !slices.ContainsFunc(tasks, func(t TaskInfo) bool { return !t.State.finished() }) {
		for i, t := range tasks {
			list[i] = Phase(t.State)
		}
		return list, nil
	}
	var err error
	if p.changes, p.overrides, err = q.changesNow(ctx, handlers); err != nil {
		return nil, err
	}
	if err := p.readPolicies(ctx, tasks); err != nil {
		return nil, err
	}
	p.readFleet(ctx)
	var due []int
	for i, t := range tasks {
		if list[i] = p.byTime(t); list[i] == PhaseDue {
			due = append(due, i)
		}
	}
	if len(due) == 0 {
		return list, nil
	}
	return list, p.holdBack(ctx, tasks, due, list)
}

// phaser finds the phases of tasks.
type phaser struct {
	q         *Queue
	handlers  map[string]*run.Handler // by kind
	changes   *control.ChangeReader
	overrides *control.Overrides
	own       map[string]*control.CompiledPolicy // by the keys of policies
	fleet     fleet
}

// readPolicies reads the policies that waiting tasks have of their own. One that cannot be
// parsed is not known.
func (p *phaser) readPolicies(ctx context.Context, tasks []TaskInfo) error {
	wanted := map[string]bool{}
	for _, t := range tasks {
		if t.Policy != "" && t.State == Open && t.Attempts > 0 {
			wanted[t.Policy] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	var keys []string
	for key := range wanted {
		keys = append(keys, key)
	}
	texts, err := p.q.store.Policies(ctx, keys)
	p.own = map[string]*control.CompiledPolicy{}
	for key, text := range texts {
		if policy, err := backoff.Parse(text); err == nil {
			p.own[key] = control.Compile(policy)
		}
	}
	return err
}

// policyOf returns the policy that holds for a task, and whether it is known.
func (p *phaser) policyOf(t TaskInfo) (policy backoff.Policy, known bool) {
	r := p.ruleOf(t)
	if r == nil {
		return policy, false
	}
	return p.overrides.Current(t.Queue, t.lane(), r).Policy, true
}

// ruleOf returns the rule of a task without overrides, or nil if it is not known.
func (p *phaser) ruleOf(t TaskInfo) *control.CompiledPolicy {
	if t.Policy != "" {
		return p.own[t.Policy]
	}
	if h := p.handlers[t.Kind]; h != nil {
		return h.Policy
	}
	return p.fleet.rules[t.Kind]
}

// lane returns the lane of a task.
func (t TaskInfo) lane() store.Lane {
	return store.Lane{State: string(t.State), Key: t.Key, Priority: t.Priority, Kind: t.Kind, Policy: t.Policy, Attempts: t.Attempts}
}

// byTime returns the phase of a task without regard to pauses and limits.
func (p *phaser) byTime(t TaskInfo) Phase {
	if t.State != Open && t.State != Snoozed {
		return Phase(t.State)
	}
	if t.ClaimedBy != "" && t.UpdatedAt.After(t.Now) {
		return PhaseRunning
	}
	policy, known := p.policyOf(t)
	failed := t.State == Open && t.Attempts > 0
	switch {
	case failed && !known:
		return PhaseTried
	case !t.Due(policy).After(t.Now):
		return PhaseDue
	case failed:
		return PhaseBackingOff
	case t.State == Snoozed:
		return PhaseSnoozed
	}
	return PhaseScheduled
}

// holdBack corrects the phases of due tasks that a pause or a limit holds back.
func (p *phaser) holdBack(ctx context.Context, tasks []TaskInfo, due []int, list []Phase) error {
	limits := map[string]store.Limit{} // by name
	names := map[int][]string{}        // by the places of tasks
	for _, i := range due {
		t := tasks[i]
		at := t.lane()
		if p.changes.Paused(t.Queue, at) {
			list[i] = PhasePaused
			continue
		}
		for _, l := range p.limitsOf(t.Queue, at) {
			limits[l.Name], names[i] = l, append(names[i], l.Name)
		}
	}
	if len(limits) == 0 {
		return nil
	}
	states, err := p.q.store.LimitStates(ctx, slices.Collect(maps.Values(limits)))
	if err != nil {
		return err
	}
	full := map[string]store.LimitState{}
	for _, l := range states {
		full[l.Name] = l
	}
	for i, of := range names {
		if slices.ContainsFunc(of, func(name string) bool {
			l := full[name]
			return l.Room <= 0 || l.Next != 0 && l.Next != tasks[i].ID
		}) {
			list[i] = PhaseLimited
		}
	}
	return nil
}

// limitsOf returns the limits of the tasks of a lane: those that live workers announce, or
// else those of this process.
func (p *phaser) limitsOf(queue string, at store.Lane) (limits []store.Limit) {
	ofQueue, live := p.fleet.queues[queue]
	ofKind, handled := p.fleet.kinds[at.Kind]
	for _, l := range slices.Concat(ofQueue.Limits, ofKind.Limits) {
		if limit, ok := l.Of(at.Key); ok {
			limits = append(limits, limit)
		}
	}
	if !live {
		limits = store.LimitsOf(limits, limitsOf("queue "+queue, p.q.cfg.Queues[queue].Limits), at.Key)
	}
	if h := p.handlers[at.Kind]; h != nil && !handled {
		limits = store.LimitsOf(limits, h.Limits, at.Key)
	}
	return limits
}

// fleet is what live workers announce.
type fleet struct {
	kinds  map[string]store.WorkerKind
	rules  map[string]*control.CompiledPolicy // by kind
	queues map[string]store.WorkerQueue
}

// liveFor is how long a worker is taken to live after it was last seen.
const liveFor = time.Minute

// readFleet reads what live workers announce. Of several the one counts that was seen last.
// A user may not have the right to read it, and then nothing is known of them.
func (p *phaser) readFleet(ctx context.Context) {
	p.fleet = fleet{map[string]store.WorkerKind{}, map[string]*control.CompiledPolicy{}, map[string]store.WorkerQueue{}}
	workers, err := p.q.store.Workers(ctx)
	if err != nil {
		return
	}
	slices.SortFunc(workers, func(a, b store.StoredWorker) int { return cmp.Compare(a.Seen, b.Seen) })
	for _, w := range workers {
		var info store.WorkerInfo
		if store.Duration(w.Now-w.Seen) >= liveFor || json.Unmarshal([]byte(w.Info), &info) != nil {
			continue
		}
		maps.Copy(p.fleet.kinds, info.Kinds)
		maps.Copy(p.fleet.queues, info.Queues)
	}
	for kind, k := range p.fleet.kinds {
		if policy, err := backoff.Parse(k.Policy); err == nil { // or a newer release has it
			p.fleet.rules[kind] = control.Compile(policy)
		}
	}
}
