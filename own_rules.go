package falldue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// ownRules has the rules of policies that tasks have of their own. It is a role, which
// reads them from the database many at once, apart from sweeps and claims: those leave
// the lanes out until their rules are known, and do not wait. The text of a key never
// changes, so that a rule that was read once stays valid.
type ownRules struct {
	read   func(ctx context.Context, keys []string) (texts map[string]string, err error)
	check  func(context.Context, []sqlgen.Formula) error
	keep   func(texts map[string]string) // is told which policies are in the table
	events events
	// troubles learns which policies cannot be read.
	troubles *troubles
	woken    chan struct{} // signalled when rules are wanted

	mu sync.Mutex
	// recent has the rules that were used last. When it is full it becomes older, whose
	// rules that nobody has used meanwhile are forgotten.
	recent, older map[string]ownRule
	wanted        map[string]map[askingLane]func() // what to call when the rule of a key is known
	skipped       map[string]ownRule               // those of recent that cannot be read
}

// ownRule is a rule, or the error with which it could not be read.
type ownRule struct {
	rule    *rule
	err     error
	retryAt time.Time // when to read it again after an error
}

// askingLane is a lane whose rule is wanted.
type askingLane struct {
	queue string
	lane  store.Lane
}

const (
	// retryUnreadable is the time between two tries to read an unreadable policy.
	retryUnreadable = 10 * time.Second
	// keepUnreadable is how much later a policy is no longer said to be unreadable for which
	// nobody asks any more: its tasks have ended.
	keepUnreadable = time.Minute
	// maxRecent is the greatest number of rules in each of recent and older.
	maxRecent = 10_000
	// maxChecked is the greatest number of formulas that one statement checks.
	maxChecked = 50
)

func newOwnRules(read func(context.Context, []string) (map[string]string, error), check func(context.Context, []sqlgen.Formula) error, keep func(map[string]string), events events) *ownRules {
	return &ownRules{
		read: read, check: check, keep: keep, events: events, troubles: newTroubles(), woken: make(chan struct{}, 1),
		recent: map[string]ownRule{}, wanted: map[string]map[askingLane]func(){}, skipped: map[string]ownRule{},
	}
}

// rule returns the rule of a lane's policy, or nil if it is not known or cannot be read.
// If it is not known and later is not nil, it is read, and later is called once it is
// known.
func (o *ownRules) rule(queue string, at store.Lane, later func()) *rule {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.recent[at.Policy]
	if !ok {
		if r, ok = o.older[at.Policy]; ok {
			o.remember(at.Policy, r)
		}
	}
	if ok && (r.err == nil || time.Now().Before(r.retryAt)) {
		return r.rule
	}
	if later == nil {
		return nil
	}
	if o.wanted[at.Policy] == nil {
		o.wanted[at.Policy] = map[askingLane]func(){}
	}
	o.wanted[at.Policy][askingLane{queue, at}] = later
	signal(o.woken)
	return nil
}

func (o *ownRules) remember(key string, r ownRule) {
	if len(o.recent) >= maxRecent {
		o.older, o.recent = o.recent, map[string]ownRule{}
	}
	o.recent[key] = r
}

// work reads the wanted rules until ctx ends.
func (o *ownRules) work(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		keys := o.next()
		if len(keys) == 0 {
			await(ctx, o.woken, o.tell(nil))
			continue
		}
		start := time.Now()
		rules, err := o.load(ctx, keys)
		if err != nil {
			if ctx.Err() == nil {
				o.events.policiesFailed(len(keys), err)
				_ = pause(ctx, errorPause(failures)) // the loop ends with ctx
			}
			failures++
			continue
		}
		failures = 0
		o.loaded(rules)
		_ = pause(ctx, time.Since(start)) // however many are wanted, claims have half of the time
	}
}

// next lists the keys of wanted rules, as many as are read at once.
func (o *ownRules) next() (keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.wanted {
		if keys = append(keys, key); len(keys) == store.MaxBatch {
			break
		}
	}
	return keys
}

// loaded remembers rules and calls those who wait for them.
func (o *ownRules) loaded(rules map[string]ownRule) {
	var ready []func()
	o.mu.Lock()
	for key, r := range rules {
		o.remember(key, r)
		for lane, later := range o.wanted[key] {
			if r.err != nil {
				o.events.unreadablePolicy(lane.queue, lane.lane.Kind, r.err)
			} else {
				ready = append(ready, later)
			}
		}
		delete(o.wanted, key)
	}
	o.mu.Unlock()
	o.tell(rules)
	for _, later := range ready {
		later()
	}
}

// tell tells which policies cannot be read, now that rules are known, and returns in how long
// it is to be called again.
func (o *ownRules) tell(rules map[string]ownRule) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, r := range rules {
		if delete(o.skipped, key); r.err != nil {
			o.skipped[key] = r
		}
	}
	wait, errs := time.Hour, map[string]error{}
	for key, r := range o.skipped {
		left := time.Until(r.retryAt.Add(keepUnreadable))
		if left <= 0 {
			delete(o.skipped, key)
			continue
		}
		wait, errs[key] = min(wait, left), r.err
	}
	o.troubles.skip(errs)
	return wait
}

// load reads the rules of keys, and checks that the database computes their delays as
// Go does.
func (o *ownRules) load(ctx context.Context, keys []string) (map[string]ownRule, error) {
	ctx, cancel := statementContext(ctx, statementTimeout)
	defer cancel()
	texts, err := o.read(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	o.keep(texts)
	rules := make(map[string]ownRule, len(keys))
	var parsed []string // keys
	for _, key := range keys {
		text, ok := texts[key]
		if !ok {
			rules[key] = unreadable(fmt.Errorf("policy %s is not in the policies table", key))
			continue
		}
		policy, err := backoff.Parse(text)
		if err != nil {
			rules[key] = unreadable(fmt.Errorf("policy %s: %w", key, err))
			continue
		}
		rules[key] = ownRule{rule: newRule(policy)}
		parsed = append(parsed, key)
	}
	for len(parsed) > 0 {
		n := min(len(parsed), maxChecked)
		if err := o.checkAll(ctx, rules, parsed[:n]); err != nil {
			return nil, err
		}
		parsed = parsed[n:]
	}
	return rules, nil
}

// checkAll checks the delays of the policies of keys. If the database refuses their
// statement, or computes one of them differently, it checks each by itself.
func (o *ownRules) checkAll(ctx context.Context, rules map[string]ownRule, keys []string) error {
	formulas := make([]sqlgen.Formula, len(keys))
	for i, key := range keys {
		formulas[i] = rules[key].rule.policy.Delay()
	}
	err := o.check(ctx, formulas)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return err
	case len(keys) == 1:
		rules[keys[0]] = unreadable(err)
	default:
		for i := range keys {
			if err := o.checkAll(ctx, rules, keys[i:i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func unreadable(err error) ownRule {
	return ownRule{err: err, retryAt: time.Now().Add(retryUnreadable)}
}
