package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Policies are policies in force: those of kinds, and those that tasks have of their own.
type Policies struct {
	kinds, own map[string]backoff.Policy
	announced  map[string]backoff.Policy // those that most live workers have
	// Unreadable has why the policies of some keys are not known.
	Unreadable map[string]error
}

// Policies returns the policies of [Config], those that live workers announce for other
// kinds, and those of the keys that tasks have, see [falldue.TaskInfo]. Of several policies
// of a kind it is the one that most workers have, see [KindPolicies]. Keys that are "" are
// left out. A policy that cannot be read is no error.
func (i *Inspector) Policies(ctx context.Context, keys ...string) (Policies, error) {
	p := Policies{kinds: i.policies, own: map[string]backoff.Policy{}, announced: map[string]backoff.Policy{}, Unreadable: map[string]error{}}
	if workers, err := i.Workers(ctx); err == nil { // a user may not have the right
		for kind, list := range KindPolicies(workers) {
			if policy, err := backoff.Parse(list[0].Policy); err == nil { // or a newer release has it
				p.announced[kind] = policy
			}
		}
	}
	keys = slices.Clone(keys)
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return key == "" })
	if len(keys) == 0 {
		return p, nil
	}
	texts, err := i.store.Policies(ctx, keys)
	if err != nil {
		return Policies{}, err
	}
	for _, key := range keys {
		text, ok := texts[key]
		if !ok {
			p.Unreadable[key] = fmt.Errorf("policy %s is not in the policies table", key)
			continue
		}
		policy, err := backoff.Parse(text)
		if err != nil {
			p.Unreadable[key] = fmt.Errorf("policy %s: %w", key, err)
			continue
		}
		p.own[key] = policy
	}
	return p, nil
}

// Of returns the policy of the tasks of a kind whose own policy has a key, which is "" if
// they have none. It reports whether the policy is known.
func (p Policies) Of(kind, key string) (policy backoff.Policy, known bool) {
	if policy, known = p.given(kind, key); !known && key == "" {
		policy, known = p.announced[kind]
	}
	return policy, known
}

// given is Of without the policies that workers announce.
func (p Policies) given(kind, key string) (policy backoff.Policy, known bool) {
	if key != "" {
		policy, known = p.own[key]
		return policy, known
	}
	if policy, known = p.kinds[kind]; !known {
		policy, known = p.kinds[""]
	}
	return policy, known
}

// Due returns when a task falls due, or the zero time if its policy is not known or it is
// finished. Of a task that never failed it is always known.
func (p Policies) Due(t falldue.TaskInfo) time.Time {
	policy, known := p.Of(t.Kind, t.Policy)
	if !known && t.State == falldue.Open && t.Attempts > 0 {
		return time.Time{}
	}
	return t.Due(policy)
}

// delay returns how long the tasks of a lane wait, and whether that is known.
func (p Policies) delay(at store.Lane) (time.Duration, bool) {
	if at.State == string(falldue.Snoozed) || at.Attempts == 0 {
		return 0, true
	}
	policy, known := p.Of(at.Kind, at.Policy)
	delay, _ := policy.Wait(int64(at.Attempts))
	return delay, known
}
