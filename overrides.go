package falldue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// overrides has the overrides of policies that hold. It is a role, which computes the rules
// that they give and compares their delays with the database's before they hold. Claims and
// sweeps do not wait for it: they go by the old rules until then.
type overrides struct {
	kinds   map[string]*rule // the rules of kinds
	check   func(context.Context, []sqlgen.Formula) error
	changed func() // is called when lanes have other rules
	events  events
	// troubles learns which overrides cannot be obeyed.
	troubles *troubles
	woken    chan struct{}

	// inForce has the overrides that hold, the most specific first. It is nil if there are
	// none, which is all that others look at then.
	inForce atomic.Pointer[[]*override]
	version atomic.Int64 // counts the changes of inForce and of the rules in it

	mu     sync.Mutex
	asked  []askedOverride
	wanted map[wantedRule]func() // what to call when the rule is known
	logged map[string]string     // the last error of each subject
	unread map[string]error      // why the newest override of a subject cannot be read
}

// override is a step of an override.
type override struct {
	control.Subject
	id         int64
	includeOwn bool
	policy     backoff.Override
	rules      map[*rule]madeRule // by the rules that they are made of; overrides.mu guards them
}

// madeRule is what an override makes of a rule, or what holds instead.
type madeRule struct {
	*rule
	err     error     // why it was not made
	retryAt time.Time // when to try again to make it; zero if it was made
}

// wantedRule is a rule of which to make another, and the lane that needs it.
type wantedRule struct {
	control.Subject
	own  *rule
	lane askingLane
}

// retryOverride is the time between two tries to make the rules of an override.
const retryOverride = 10 * time.Second

func newOverrides(check func(context.Context, []sqlgen.Formula) error, kinds map[string]*rule, e events) *overrides {
	return &overrides{
		kinds: kinds, check: check, changed: func() {}, events: e, troubles: newTroubles(), woken: make(chan struct{}, 1),
		wanted: map[wantedRule]func(){}, logged: map[string]string{},
	}
}

// follows reports whether the tasks of a lane follow the override.
func (o *override) follows(queue string, at store.Lane) bool {
	return o.Subject.Follows(o.includeOwn, queue, at)
}

// of returns the override that holds for a lane, or nil.
func (o *overrides) of(queue string, at store.Lane) *override {
	list := o.inForce.Load()
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

// rule returns the rule of a lane whose rule without overrides is own. It is nil while it is
// not known; if later is not nil it is then made, and later is called.
func (o *overrides) rule(queue string, at store.Lane, own *rule, later func()) *rule {
	one := o.of(queue, at)
	if one == nil {
		return own
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if made, ok := one.rules[own]; ok {
		return made.rule
	}
	if later != nil {
		o.wanted[wantedRule{one.Subject, own, askingLane{queue, at}}] = later
		signal(o.woken)
	}
	return nil
}

// current returns the rule by which a run ends that was claimed under r: overrides may have
// begun or ended since. What the database computes does not matter there.
func (o *overrides) current(queue string, at store.Lane, r *rule) *rule {
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
		return made.rule
	}
	if made := one.make(own); made.policy.Err() == nil {
		return made
	}
	return own
}

// make returns what the override makes of a rule.
func (o *override) make(own *rule) *rule {
	made := newRule(o.policy.Of(own.policy))
	made.own, made.setFor = own, o.String()
	return made
}

// ask replaces what the table of changes asks for.
func (o *overrides) ask(list []knownChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := make([]askedOverride, 0, len(list))
	o.unread = map[string]error{}
	for _, c := range list {
		subject, ok := control.ParseSubject(c.Subject)
		if !ok {
			o.log(c.Subject, control.ErrUnknownSubject)
			o.unread[c.Subject] = control.ErrUnknownSubject
			continue
		}
		before := slices.IndexFunc(o.asked, func(a askedOverride) bool { return a.Subject == subject })
		if before >= 0 && o.asked[before].id == c.ID {
			same, moved := o.asked[before].readAgain(c)
			if asked = append(asked, same); moved {
				signal(o.woken)
			}
			continue
		}
		read, err := control.ParseOverride(c.Value)
		if err != nil {
			o.log(subject.String(), err)
			o.unread[subject.String()] = err
			if before >= 0 {
				asked = append(asked, o.asked[before])
			}
			continue
		}
		one := askedOverride{Subject: subject, id: c.ID, includeOwn: read.IncludeOwn, steps: read.Steps, begin: c.made()}
		if c.Ends > 0 {
			one.until = c.read.Add(store.Duration(c.Ends - c.Now))
		}
		asked = append(asked, one)
	}
	slices.SortFunc(asked, func(a, b askedOverride) int { return a.Compare(b.Subject) })
	if !slices.EqualFunc(asked, o.asked, func(a, b askedOverride) bool { return a.id == b.id }) {
		signal(o.woken)
	}
	o.asked = asked
	o.tell()
}

// tell tells which overrides the worker cannot obey. The caller holds mu.
func (o *overrides) tell() {
	var list []store.Refusal
	for subject, err := range o.unread {
		list = append(list, store.Refusal{Subject: subject, Error: err.Error()})
	}
	if inForce := o.inForce.Load(); inForce != nil {
		for _, one := range *inForce {
			for own, made := range one.rules {
				if made.err != nil {
					list = append(list, store.Refusal{Subject: one.String(), Own: own.policy.String(), Holds: made.policy.String(), Error: made.err.Error()})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b store.Refusal) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Own, b.Own))
	})
	o.troubles.refuse(list)
}

// log logs why an override cannot be obeyed, unless that is known. The caller holds mu.
func (o *overrides) log(subject string, err error) {
	if o.logged[subject] != err.Error() {
		o.logged[subject] = err.Error()
		o.events.overrideFailed(subject, err)
	}
}

// work makes overrides hold and end until ctx ends.
func (o *overrides) work(ctx context.Context) {
	for ctx.Err() == nil {
		wait := never
		if next := o.refresh(ctx); !next.IsZero() {
			wait = max(time.Until(next), time.Millisecond)
		}
		await(ctx, o.woken, wait)
	}
}

// refresh makes the overrides hold that are asked for, and returns when others will, or the
// zero time if that is not known.
func (o *overrides) refresh(ctx context.Context) (next time.Time) {
	now := time.Now()
	o.mu.Lock()
	var list []*override
	var unmade []unmadeRule
	for _, a := range o.asked {
		policy, at := a.step(now)
		if next = soonest(next, at); policy == nil {
			continue
		}
		one, before := o.begin(a, *policy)
		list = append(list, one)
		unmade = append(unmade, o.unmade(one, before, now)...)
	}
	wanted := o.wanted
	o.wanted = map[wantedRule]func(){}
	o.mu.Unlock()

	errs := o.checkAll(ctx, unmade)
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
	old := o.inForce.Load()
	if len(list) == 0 {
		o.inForce.Store(nil)
	} else {
		o.inForce.Store(&list)
	}
	if ctx.Err() == nil {
		o.tell()
	}
	o.mu.Unlock()
	if len(unmade) > 0 || (old == nil) != (len(list) == 0) || old != nil && !slices.Equal(*old, list) {
		o.version.Add(1)
		o.changed()
	}
	for _, later := range wanted {
		later()
	}
	return next
}

// begin returns an override that is to hold, and the one that has held for its subject, or
// nil. The caller holds mu.
func (o *overrides) begin(a askedOverride, policy backoff.Override) (one, before *override) {
	if list := o.inForce.Load(); list != nil {
		if i := slices.IndexFunc(*list, func(one *override) bool { return one.Subject == a.Subject }); i >= 0 {
			before = (*list)[i]
		}
	}
	if before != nil && before.id == a.id && before.policy.String() == policy.String() {
		return before, before
	}
	return &override{Subject: a.Subject, id: a.id, includeOwn: a.includeOwn, policy: policy, rules: map[*rule]madeRule{}}, before
}

// unmadeRule is a rule that an override is to make of another.
type unmadeRule struct {
	*override
	own, made *rule
	old       *rule // what holds if it cannot be made
}

// unmade lists the rules that an override needs and has not made. The caller holds mu.
func (o *overrides) unmade(one, before *override, now time.Time) (list []unmadeRule) {
	if len(one.rules) > maxRecent {
		clear(one.rules) // those in use are made again
	}
	owns := map[*rule]*rule{} // and what has held for them
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
			owns[own] = made.rule
		}
	}
	for own, old := range owns {
		made, ok := one.rules[own]
		if !ok || !made.retryAt.IsZero() && !now.Before(made.retryAt) {
			list = append(list, unmadeRule{one, own, one.make(own), old})
		}
	}
	return list
}

// keep records the rule, or, if there is an error, the one that has held, to try again later.
func (u unmadeRule) keep(err error, now time.Time) {
	u.rules[u.own] = madeRule{rule: u.made}
	if err != nil {
		u.rules[u.own] = madeRule{u.old, err, now.Add(retryOverride)}
	}
}

// checkAll returns why each of the rules cannot be obeyed, or nil.
func (o *overrides) checkAll(ctx context.Context, list []unmadeRule) []error {
	errs := make([]error, len(list))
	var valid []int
	for i, u := range list {
		if errs[i] = u.made.policy.Err(); errs[i] == nil {
			valid = append(valid, i)
		}
	}
	check := func(part []int) error {
		ctx, cancel := statementContext(ctx, statementTimeout)
		defer cancel()
		formulas := make([]sqlgen.Formula, len(part))
		for k, i := range part {
			formulas[k] = list[i].made.policy.Delay()
		}
		return o.check(ctx, formulas)
	}
	for part := range slices.Chunk(valid, maxChecked) {
		start, err := time.Now(), check(part)
		for k, i := range part {
			if err != nil && len(part) > 1 && time.Since(start) < statementTimeout {
				errs[i] = check(part[k : k+1]) // one of them may be to blame
			} else {
				errs[i] = err
			}
		}
	}
	return errs
}

// overridden gives lanes the rules that overrides make of theirs. It comes after the gates
// that set those. A lane whose rule is not made yet is left out until it is.
type overridden struct {
	overrides *overrides
	queue     string
}

func (g overridden) admit(at store.Lane, r **rule, later func()) bool {
	if g.overrides.inForce.Load() == nil {
		return true
	}
	*r = g.overrides.rule(g.queue, at, *r, later)
	return *r != nil
}
