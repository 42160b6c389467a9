package control

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// Overrides has the overrides of policies that are in effect. It is a role: it computes the
// overridden policies, and compares their delays with the database's before an override takes
// effect. Claims and sweeps do not wait for that: they use the old policies in the meantime.
type Overrides struct {
	kinds   map[string]*CompiledPolicy // the policies of kinds
	table   delayChecker
	effects effects
	events  events
	health  *HealthReport // is told which overrides cannot be applied
	woken   chan struct{}

	// active has the overrides in effect, the most specific first. Without any it is nil, and a
	// lane's policy costs one load of the pointer.
	active  atomic.Pointer[[]*override]
	Version atomic.Int64 // counts the changes of active and of the policies in it

	mu        sync.Mutex
	scheduled []scheduledOverride
	logged    map[string]string // the last error of each subject
	unread    map[string]error  // why the newest override of a subject cannot be read
}

// override is the step of an override that is in effect.
type override struct {
	Subject
	id         int64
	set        int64 // when its change was made, in microseconds since 1970
	includeOwn bool
	policy     backoff.Override
	policies   policyCache[*CompiledPolicy] // by original policy; Overrides.mu guards the cache
}

// NewOverrides returns overrides of the policies of kinds.
func NewOverrides(table delayChecker, kinds map[string]*CompiledPolicy, effects effects, health *HealthReport, log *slog.Logger) *Overrides {
	return &Overrides{
		kinds: kinds, table: table, effects: effects, events: events{log}, health: health, woken: make(chan struct{}, 1),
		logged: map[string]string{},
	}
}

// follows reports whether the tasks of a lane follow the override.
func (o *override) follows(queue string, at store.Lane) bool {
	return o.Follows(o.includeOwn, queue, at)
}

// Any reports whether an override is in effect.
func (o *Overrides) Any() bool { return o.active.Load() != nil }

// of returns the override in effect for a lane, or nil.
func (o *Overrides) of(queue string, at store.Lane) *override {
	list := o.active.Load()
	if list == nil {
		return nil
	}
	for _, one := range *list {
		if one.follows(queue, at) {
			return one
		}
	}
	return nil
}

// PolicyOf returns the policy in effect for a lane, in which original would be in effect without overrides.
// While an overridden policy is not computed yet, PolicyOf returns nil, and later, unless nil, is called when
// the policy is known.
func (o *Overrides) PolicyOf(queue string, at store.Lane, original *CompiledPolicy, later func()) *CompiledPolicy {
	if !o.Any() {
		return original
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.of(queue, at)
	if one == nil {
		return original
	}
	policy, requested := one.policies.policyOf(original, askingLane{queue, at}, later)
	if requested {
		retry.Signal(o.woken)
	}
	return policy
}

// Current returns the policy in effect now for a run that was claimed under r: overrides may have
// begun or ended since. The end of a run needs no check of the delay in the database.
func (o *Overrides) Current(queue string, at store.Lane, r *CompiledPolicy) *CompiledPolicy {
	if o == nil {
		return r
	}
	original := r.base()
	one := o.of(queue, at)
	if one == nil {
		return original
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := one.policies.get(original); ok {
		return known.Policy
	}
	if made := one.make(original); made.Policy.Err() == nil {
		return made
	}
	return original
}

// make applies the override to a policy.
func (o *override) make(original *CompiledPolicy) *CompiledPolicy {
	made := Compile(o.policy.Of(original.Policy))
	made.original, made.SetFor = original, o.String()
	return made
}

// schedule replaces the scheduled overrides.
func (o *Overrides) schedule(changes []knownChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]scheduledOverride, 0, len(changes))
	o.unread = map[string]error{}
	for _, c := range changes {
		subject, ok := ParseSubject(c.Subject)
		if !ok {
			o.log(c.Subject, errUnknownSubject)
			o.unread[c.Subject] = errUnknownSubject
			continue
		}
		before := slices.IndexFunc(o.scheduled, func(a scheduledOverride) bool { return a.Subject == subject })
		if before >= 0 && o.scheduled[before].id == c.ID {
			same, moved := o.scheduled[before].readAgain(c)
			if list = append(list, same); moved {
				retry.Signal(o.woken)
			}
			continue
		}
		read, err := ParseOverride(c.Value)
		if err != nil {
			o.log(subject.String(), err)
			o.unread[subject.String()] = err
			if before >= 0 {
				list = append(list, o.scheduled[before])
			}
			continue
		}
		one := scheduledOverride{Subject: subject, id: c.ID, set: c.Created, includeOwn: read.IncludeOwn, steps: read.Steps, begin: c.made()}
		if c.Ends > 0 {
			one.until = c.read.Add(store.Duration(c.Ends - c.Now))
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b scheduledOverride) int { return a.Compare(b.Subject) })
	if !slices.EqualFunc(list, o.scheduled, func(a, b scheduledOverride) bool { return a.id == b.id }) {
		retry.Signal(o.woken)
	}
	o.scheduled = list
	o.report()
}

// report reports the overrides that the worker applies, the newest if there are many, and the overrides
// that it cannot apply. The caller holds mu.
func (o *Overrides) report() {
	var list []store.Refusal
	var applied []*override
	for subject, err := range o.unread {
		list = append(list, store.Refusal{Subject: subject, Error: err.Error()})
	}
	if active := o.active.Load(); active != nil {
		for _, one := range *active {
			refused := false
			for original, p := range one.policies.all() {
				if p.Err != nil {
					refused = true
					list = append(list, store.Refusal{Subject: one.String(), Own: original.Policy.String(), Holds: p.Policy.Policy.String(), Error: p.Err.Error()})
				}
			}
			if !refused {
				applied = append(applied, one)
			}
		}
	}
	slices.SortFunc(list, func(a, b store.Refusal) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Own, b.Own))
	})
	slices.SortFunc(applied, func(a, b *override) int { return cmp.Compare(b.set, a.set) })
	set := map[string]int64{}
	for _, one := range applied[:min(len(applied), maxApplied)] {
		set[one.String()] = one.set
	}
	o.health.apply(set, list)
}

// log logs why an override cannot be applied, unless it has logged that before. The caller holds mu.
func (o *Overrides) log(subject string, err error) {
	if o.logged[subject] != err.Error() {
		o.logged[subject] = err.Error()
		o.events.overrideFailed(subject, err)
	}
}

// Work begins and ends overrides until ctx ends.
func (o *Overrides) Work(ctx context.Context) {
	for ctx.Err() == nil {
		wait := forEver
		if next := o.Refresh(ctx); !next.IsZero() {
			wait = max(time.Until(next), time.Millisecond)
		}
		retry.Await(ctx, o.woken, wait)
	}
}

// Refresh puts the scheduled overrides into effect, and returns when to call it again: when the next
// step begins, for example. The time is zero if there is no such moment.
func (o *Overrides) Refresh(ctx context.Context) (next time.Time) {
	now := time.Now()
	o.mu.Lock()
	var list []*override
	var unmade []pending
	for _, a := range o.scheduled {
		policy, at := a.step(now)
		if next = soonest(next, at); policy == nil {
			continue
		}
		one, before := o.begin(a, *policy)
		list = append(list, one)
		unmade = append(unmade, o.unmade(one, before, now)...)
	}
	o.mu.Unlock()

	made := make([]*CompiledPolicy, len(unmade))
	for i, u := range unmade {
		made[i] = u.made
	}
	checked, _ := check(ctx, o.table, made)
	o.mu.Lock()
	for i, u := range unmade {
		p := checked[i]
		if p.Err != nil {
			p.Policy = u.old
			if ctx.Err() == nil {
				o.log(u.String(), p.Err)
			}
		}
		u.policies.put(u.original, p)
	}
	for _, one := range list {
		for _, p := range one.policies.all() {
			next = soonest(next, p.retryAt)
		}
	}
	old := o.active.Load()
	var ready []func()
	if old != nil {
		for _, one := range *old {
			ready = append(ready, one.policies.answer()...)
		}
	}
	if len(list) == 0 {
		o.active.Store(nil)
	} else {
		o.active.Store(&list)
	}
	if ctx.Err() == nil {
		o.report()
	}
	o.mu.Unlock()
	if len(unmade) > 0 || (old == nil) != (len(list) == 0) || old != nil && !slices.Equal(*old, list) {
		o.Version.Add(1)
		o.effects.PoliciesChanged()
	}
	for _, later := range ready { // a lane whose policy is still unknown requests it again
		later()
	}
	return next
}

// nextStep returns when the next step of a scheduled override begins or ends, or a zero time.
func (o *Overrides) nextStep(now time.Time) (next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.scheduled {
		_, at := a.step(now)
		next = soonest(next, at)
	}
	return next
}

// begin returns the override that takes effect for a subject, and the one that was in effect for the
// subject before, or nil. The caller holds mu.
func (o *Overrides) begin(a scheduledOverride, policy backoff.Override) (one, before *override) {
	if list := o.active.Load(); list != nil {
		if i := slices.IndexFunc(*list, func(one *override) bool { return one.Subject == a.Subject }); i >= 0 {
			before = (*list)[i]
		}
	}
	if before != nil && before.id == a.id && before.policy.String() == policy.String() {
		return before, before
	}
	return &override{Subject: a.Subject, id: a.id, set: a.set, includeOwn: a.includeOwn, policy: policy, policies: newPolicyCache[*CompiledPolicy]()}, before
}

// pending is an overridden policy that is not checked yet.
type pending struct {
	*override
	original, made *CompiledPolicy
	old            *CompiledPolicy // the policy that stays in effect if made cannot be applied
}

// unmade lists the policies that an override needs and that are not checked. The caller holds mu.
func (o *Overrides) unmade(one, before *override, now time.Time) (list []pending) {
	originals := map[*CompiledPolicy]*CompiledPolicy{} // with the policy in effect so far
	if one.Policy == "" {
		for kind, original := range o.kinds {
			if one.Kind == "" || one.Kind == kind {
				originals[original] = original
			}
		}
	}
	if before != nil {
		for original := range before.policies.requested {
			originals[original] = original
		}
		for original, p := range before.policies.all() {
			originals[original] = p.Policy
		}
	}
	for original, old := range originals {
		if p, ok := one.policies.get(original); !ok || !p.settled(now) {
			list = append(list, pending{one, original, one.make(original), old})
		}
	}
	return list
}

// scheduledOverride is an override as the table of changes has it.
type scheduledOverride struct {
	Subject
	id, set    int64 // of the change, and when it was made, in microseconds since 1970
	includeOwn bool
	begin      time.Time // by the worker's monotonic clock, as until; a zero until is never
	until      time.Time
	steps      []Step
}

// readAgain returns the override with the times of another read of its change, and reports whether
// they have moved: the worker's clock stands still while its machine sleeps, and the database's clock
// may be set. Each read makes the times late by its duration, so the earliest times are kept.
func (a scheduledOverride) readAgain(c knownChange) (same scheduledOverride, moved bool) {
	by := c.made().Sub(a.begin)
	if by >= 0 && by <= retry.StatementTimeout {
		return a, false
	}
	a.begin = a.begin.Add(by)
	if !a.until.IsZero() {
		a.until = a.until.Add(by)
	}
	return a, true
}

// step returns the step that is in effect at now, and when that changes. After the end of the
// override the step is nil.
func (a scheduledOverride) step(now time.Time) (policy *backoff.Override, next time.Time) {
	if !a.until.IsZero() && !now.Before(a.until) {
		return nil, time.Time{}
	}
	for i, step := range a.steps {
		if at := a.begin.Add(step.After); i > 0 && now.Before(at) {
			return policy, soonest(at, a.until)
		}
		policy = &a.steps[i].Formula
	}
	return policy, a.until
}

// soonest returns the earlier of two times. A zero time never comes.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
