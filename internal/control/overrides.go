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

// Overrides has the overrides of policies that hold. It is a role, which computes the rules
// that they give and compares their delays with the database's before they hold. Claims and
// sweeps do not wait for it: they go by the old rules until then.
type Overrides struct {
	kinds   map[string]*CompiledPolicy // the rules of kinds
	table   delayChecker
	effects effects
	events  events
	// health learns which overrides cannot be obeyed.
	health *HealthReport
	woken  chan struct{}

	// active has the overrides that hold, the most specific first. It is nil if there are
	// none, which is all that others look at then.
	active  atomic.Pointer[[]*override]
	Version atomic.Int64 // counts the changes of inForce and of the rules in it

	mu        sync.Mutex
	scheduled []scheduledOverride
	wanted    map[request]func() // what to call when the rule is known
	logged    map[string]string  // the last error of each subject
	unread    map[string]error   // why the newest override of a subject cannot be read
}

// override is a step of an override.
type override struct {
	Subject
	id         int64
	includeOwn bool
	policy     backoff.Override
	rules      map[*CompiledPolicy]overridden // by the rules that they are made of; overrides.mu guards them
}

// overridden is what an override makes of a rule, or what holds instead.
type overridden struct {
	*CompiledPolicy
	err     error     // why it was not made
	retryAt time.Time // when to try again to make it; zero if it was made
}

// request is a rule of which to make another, and the lane that needs it.
type request struct {
	Subject
	own  *CompiledPolicy
	lane askingLane
}

// retryOverride is the time between two tries to make the rules of an override.
const retryOverride = 10 * time.Second

// NewOverrides returns overrides of the policies of kinds.
func NewOverrides(table delayChecker, kinds map[string]*CompiledPolicy, effects effects, health *HealthReport, log *slog.Logger) *Overrides {
	return &Overrides{
		kinds: kinds, table: table, effects: effects, events: events{log}, health: health, woken: make(chan struct{}, 1),
		wanted: map[request]func(){}, logged: map[string]string{},
	}
}

// follows reports whether the tasks of a lane follow the override.
func (o *override) follows(queue string, at store.Lane) bool {
	return o.Follows(o.includeOwn, queue, at)
}

// Any reports whether an override is in effect.
func (o *Overrides) Any() bool { return o.active.Load() != nil }

// of returns the override that holds for a lane, or nil.
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

// PolicyOf returns the policy of a lane whose rule without overrides is own. It is nil while it is
// not known; if later is not nil it is then made, and later is called.
func (o *Overrides) PolicyOf(queue string, at store.Lane, own *CompiledPolicy, later func()) *CompiledPolicy {
	one := o.of(queue, at)
	if one == nil {
		return own
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if made, ok := one.rules[own]; ok {
		return made.CompiledPolicy
	}
	if later != nil {
		o.wanted[request{one.Subject, own, askingLane{queue, at}}] = later
		retry.Signal(o.woken)
	}
	return nil
}

// Current returns the rule by which a run ends that was claimed under r: overrides may have
// begun or ended since. What the database computes does not matter there.
func (o *Overrides) Current(queue string, at store.Lane, r *CompiledPolicy) *CompiledPolicy {
	if o == nil {
		return r
	}
	own := r.base()
	one := o.of(queue, at)
	if one == nil {
		return own
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if made, ok := one.rules[own]; ok {
		return made.CompiledPolicy
	}
	if made := one.make(own); made.Policy.Err() == nil {
		return made
	}
	return own
}

// make returns what the override makes of a rule.
func (o *override) make(own *CompiledPolicy) *CompiledPolicy {
	made := Compile(o.policy.Of(own.Policy))
	made.original, made.SetFor = own, o.String()
	return made
}

// ask replaces what the table of changes asks for.
func (o *Overrides) ask(list []knownChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := make([]scheduledOverride, 0, len(list))
	o.unread = map[string]error{}
	for _, c := range list {
		subject, ok := ParseSubject(c.Subject)
		if !ok {
			o.log(c.Subject, errUnknownSubject)
			o.unread[c.Subject] = errUnknownSubject
			continue
		}
		before := slices.IndexFunc(o.scheduled, func(a scheduledOverride) bool { return a.Subject == subject })
		if before >= 0 && o.scheduled[before].id == c.ID {
			same, moved := o.scheduled[before].readAgain(c)
			if asked = append(asked, same); moved {
				retry.Signal(o.woken)
			}
			continue
		}
		read, err := ParseOverride(c.Value)
		if err != nil {
			o.log(subject.String(), err)
			o.unread[subject.String()] = err
			if before >= 0 {
				asked = append(asked, o.scheduled[before])
			}
			continue
		}
		one := scheduledOverride{Subject: subject, id: c.ID, includeOwn: read.IncludeOwn, steps: read.Steps, begin: c.made()}
		if c.Ends > 0 {
			one.until = c.read.Add(store.Duration(c.Ends - c.Now))
		}
		asked = append(asked, one)
	}
	slices.SortFunc(asked, func(a, b scheduledOverride) int { return a.Compare(b.Subject) })
	if !slices.EqualFunc(asked, o.scheduled, func(a, b scheduledOverride) bool { return a.id == b.id }) {
		retry.Signal(o.woken)
	}
	o.scheduled = asked
	o.tell()
}

// tell tells which overrides the worker cannot obey. The caller holds mu.
func (o *Overrides) tell() {
	var list []store.Refusal
	for subject, err := range o.unread {
		list = append(list, store.Refusal{Subject: subject, Error: err.Error()})
	}
	if inForce := o.active.Load(); inForce != nil {
		for _, one := range *inForce {
			for own, made := range one.rules {
				if made.err != nil {
					list = append(list, store.Refusal{Subject: one.String(), Own: own.Policy.String(), Holds: made.Policy.String(), Error: made.err.Error()})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b store.Refusal) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Own, b.Own))
	})
	o.health.refuse(list)
}

// log logs why an override cannot be obeyed, unless that is known. The caller holds mu.
func (o *Overrides) log(subject string, err error) {
	if o.logged[subject] != err.Error() {
		o.logged[subject] = err.Error()
		o.events.overrideFailed(subject, err)
	}
}

// Work makes overrides hold and end until ctx ends.
func (o *Overrides) Work(ctx context.Context) {
	for ctx.Err() == nil {
		wait := forEver
		if next := o.Refresh(ctx); !next.IsZero() {
			wait = max(time.Until(next), time.Millisecond)
		}
		retry.Await(ctx, o.woken, wait)
	}
}

// Refresh makes the overrides hold that are asked for, and returns when others will, or the
// zero time if that is not known.
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
	wanted := o.wanted
	o.wanted = map[request]func(){}
	o.mu.Unlock()

	made := make([]*CompiledPolicy, len(unmade))
	for i, u := range unmade {
		made[i] = u.made
	}
	errs, _ := checkDelays(ctx, o.table, made)
	o.mu.Lock()
	for i, u := range unmade {
		if u.keep(errs[i], now); errs[i] != nil && ctx.Err() == nil {
			o.log(u.String(), errs[i])
		}
	}
	for _, one := range list {
		for _, made := range one.rules {
			next = soonest(next, made.retryAt)
		}
	}
	old := o.active.Load()
	if len(list) == 0 {
		o.active.Store(nil)
	} else {
		o.active.Store(&list)
	}
	if ctx.Err() == nil {
		o.tell()
	}
	o.mu.Unlock()
	if len(unmade) > 0 || (old == nil) != (len(list) == 0) || old != nil && !slices.Equal(*old, list) {
		o.Version.Add(1)
		o.effects.PoliciesChanged()
	}
	for _, later := range wanted {
		later()
	}
	return next
}

// begin returns an override that is to hold, and the one that has held for its subject, or
// nil. The caller holds mu.
func (o *Overrides) begin(a scheduledOverride, policy backoff.Override) (one, before *override) {
	if list := o.active.Load(); list != nil {
		if i := slices.IndexFunc(*list, func(one *override) bool { return one.Subject == a.Subject }); i >= 0 {
			before = (*list)[i]
		}
	}
	if before != nil && before.id == a.id && before.policy.String() == policy.String() {
		return before, before
	}
	return &override{Subject: a.Subject, id: a.id, includeOwn: a.includeOwn, policy: policy, rules: map[*CompiledPolicy]overridden{}}, before
}

// pending is a rule that an override is to make of another.
type pending struct {
	*override
	own, made *CompiledPolicy
	old       *CompiledPolicy // what holds if it cannot be made
}

// unmade lists the rules that an override needs and has not made. The caller holds mu.
func (o *Overrides) unmade(one, before *override, now time.Time) (list []pending) {
	if len(one.rules) > maxRecent {
		clear(one.rules) // those in use are made again
	}
	owns := map[*CompiledPolicy]*CompiledPolicy{} // and what has held for them
	if one.Policy == "" {
		for kind, own := range o.kinds {
			if one.Kind == "" || one.Kind == kind {
				owns[own] = own
			}
		}
	}
	for w := range o.wanted {
		if w.Subject == one.Subject {
			owns[w.own] = w.own
		}
	}
	if before != nil {
		for own, made := range before.rules {
			owns[own] = made.CompiledPolicy
		}
	}
	for own, old := range owns {
		made, ok := one.rules[own]
		if !ok || !made.retryAt.IsZero() && !now.Before(made.retryAt) {
			list = append(list, pending{one, own, one.make(own), old})
		}
	}
	return list
}

// keep records the rule, or, if there is an error, the one that has held, to try again later.
func (u pending) keep(err error, now time.Time) {
	u.rules[u.own] = overridden{CompiledPolicy: u.made}
	if err != nil {
		u.rules[u.own] = overridden{u.old, err, now.Add(retryOverride)}
	}
}

// scheduledOverride is an override as the table of changes has it.
type scheduledOverride struct {
	Subject
	id         int64 // of the change
	includeOwn bool
	begin      time.Time // by the worker's monotonic clock, as until; a zero until is never
	until      time.Time
	steps      []Step
}

// readAgain returns the override with the times that another read of its change gives, and reports
// whether they have moved: the worker's clock stands still while its machine sleeps, and the
// database's may be set. A read makes them late by what it takes, so that of several reads the one
// that makes them earliest is right.
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

// step returns the step that holds at now, and when another one does. It is nil after the
// end.
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
