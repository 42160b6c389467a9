package falldue

import (
	"context"
	"maps"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Phase says what a task waits for, if it does, more exactly than its [State].
type Phase string

// The phases of tasks that are not finished. Those of finished tasks are PhaseDone,
// PhaseDead and PhaseCancelled.
const (
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
	// PhaseLimited tasks are due, and a limit that this process knows admits no more now:
	// one of a kind that it handles, or of a queue of its Config.
	PhaseLimited Phase = "limited"
	// PhaseTried tasks have failed or been lost, and this process does not know their policy,
	// so that they may be due or backing off.
	PhaseTried Phase = "tried"

	PhaseDone      Phase = Phase(Done)
	PhaseDead      Phase = Phase(Dead)
	PhaseCancelled Phase = Phase(Cancelled)
)

var phases = []Phase{
	PhaseRunning, PhaseDue, PhaseScheduled, PhaseBackingOff, PhaseSnoozed, PhasePaused, PhaseLimited, PhaseTried, PhaseDone, PhaseDead, PhaseCancelled,
}

// Phases returns the phases of tasks that were just read, in their order. It reads the
// policies of tasks that have their own, and the pauses and the permits of limits if any
// task is due. It knows the policies of the kinds that this process handles.
func (q *Queue) Phases(ctx context.Context, tasks []TaskInfo) ([]Phase, error) {
	q.mu.Lock()
	handlers := maps.Clone(q.handlers)
	q.mu.Unlock()
	p := phaser{q: q, handlers: handlers}
	if err := p.readPolicies(ctx, tasks); err != nil {
		return nil, err
	}
	list := make([]Phase, len(tasks))
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
	q        *Queue
	handlers map[string]*handler       // by kind
	own      map[string]backoff.Policy // by the keys of policies
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
	p.own = map[string]backoff.Policy{}
	for key, text := range texts {
		if policy, err := backoff.Parse(text); err == nil {
			p.own[key] = policy
		}
	}
	return err
}

// policyOf returns the policy of a task, and whether it is known.
func (p *phaser) policyOf(t TaskInfo) (policy backoff.Policy, known bool) {
	if t.Policy != "" {
		policy, known = p.own[t.Policy]
		return policy, known
	}
	if h := p.handlers[t.Kind]; h != nil {
		return h.rule.policy, true
	}
	return policy, false
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
	reader := newChangeReader(p.q.store, events{p.q.cfg.Logger})
	if err := reader.read(ctx); err != nil {
		return err
	}
	limiters := map[string]limiter{} // by queue
	var limited []store.Source
	var ids []int64
	places := map[int64]int{} // by the ids of tasks
	for _, i := range due {
		t := tasks[i]
		at := store.Lane{State: string(t.State), Key: t.Key, Priority: t.Priority, Kind: t.Kind, Policy: t.Policy, Attempts: t.Attempts}
		if reader.paused(t.Queue, at) {
			list[i] = PhasePaused
			continue
		}
		l, ok := limiters[t.Queue]
		if !ok {
			l = newLimiter(t.Queue, p.q.cfg.Queues[t.Queue].Limits, p.handlers)
			limiters[t.Queue] = l
		}
		if limits := l.of(at); len(limits) > 0 {
			limited, ids = append(limited, store.Source{Lane: at, Limits: limits}), append(ids, t.ID)
			places[t.ID] = i
		}
	}
	if len(limited) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	heldBack, err := p.q.store.HeldBack(ctx, limited, ids)
	for _, id := range heldBack {
		list[places[id]] = PhaseLimited
	}
	return err
}
