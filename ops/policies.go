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

// Policies are the policies in effect: the policies of kinds, and per-task policies.
type Policies struct {
	kinds, own map[string]backoff.Policy
	announced  map[string]backoff.Policy // those that most live workers have
	releases   map[string][]KindPolicy   // the releases of live workers, if they have several
	overrides  []Override                // the most specific first
	// Unreadable has the reasons why some per-task policies are unknown, by their keys.
	Unreadable map[string]error
}

// Policies returns the policies of kinds, and the per-task policies with the given keys ([falldue.TaskInfo].Policy). The
// policies of kinds come from [Ops.WithPolicies], the queue's own kinds and live workers, in this order. Overrides are included ([Ops.SetPolicy]). If live workers have several policies for a
// kind, the policy of most workers counts, see [KindPolicies]. A key "" is ignored. If a policy cannot be read,
// Policies returns no error, and [Policies].Unreadable has the reason.
func (o *Ops) Policies(ctx context.Context, keys ...string) (Policies, error) {
	s, err := o.snapshot(ctx, keys...)
	return s.Policies, err
}

func newPolicies(kinds map[string]backoff.Policy, overrides []Override, workers []Worker) Policies {
	p := Policies{kinds: kinds, overrides: overrides, announced: map[string]backoff.Policy{}, releases: map[string][]KindPolicy{}}
	for kind, list := range KindPolicies(workers) {
		if policy, err := backoff.Parse(list[0].Policy); err == nil { // or a newer release has it
			p.announced[kind] = policy
		}
		if len(list) > 1 {
			p.releases[kind] = list
		}
	}
	return p
}

// readOwn reads per-task policies by their keys.
func (p *Policies) readOwn(ctx context.Context, s *store.Store, keys []string) error {
	p.own, p.Unreadable = map[string]backoff.Policy{}, map[string]error{}
	keys = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(keys))), func(key string) bool { return key == "" })
	if len(keys) == 0 {
		return nil
	}
	texts, err := s.Policies(ctx, keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if policy, err := store.PolicyOf(texts, key); err != nil {
			p.Unreadable[key] = err
		} else {
			p.own[key] = policy
		}
	}
	return nil
}

// Of returns the policy that is in effect for a task, and reports whether this policy is
// known. The policy depends on the task's Queue, Kind, Policy and Key.
func (p Policies) Of(t falldue.TaskInfo) (policy backoff.Policy, known bool) {
	if policy, known = p.Code(t); !known {
		return policy, false
	}
	if o, ok := p.Override(t); ok {
		if made := o.Formula.Of(policy); made.Err() == nil { // else workers keep the old one
			return made, true
		}
	}
	return policy, true
}

// Code returns a task's policy, ignoring overrides: its per-task policy, or else its kind's policy. Code also reports
// whether this policy is known.
func (p Policies) Code(t falldue.TaskInfo) (policy backoff.Policy, known bool) {
	if policy, known = p.given(t.Kind, t.Policy); !known && t.Policy == "" {
		policy, known = p.announced[t.Kind]
	}
	return policy, known
}

// Releases returns the policies that live workers have for a kind, the policy of most workers first. The other methods
// use this first policy, and each worker uses its own. Releases returns nothing if all workers have the same policy, or
// if the policy comes from [Ops.WithPolicies] or from the queue's own kinds.
func (p Policies) Releases(kind string) []KindPolicy {
	if _, given := p.given(kind, ""); given {
		return nil
	}
	return p.releases[kind]
}

// given is Code without the policies that workers announce.
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

// Override returns the override that is in effect for a task, if there is one.
func (p Policies) Override(t falldue.TaskInfo) (Override, bool) {
	for _, o := range p.overrides {
		if o.Names(t) {
			return o, true
		}
	}
	return Override{}, false
}

// with returns the policies as they would be with another override.
func (p Policies) with(o Override) Policies {
	p = p.without(o.Subject)
	p.overrides = append(p.overrides, o)
	slices.SortFunc(p.overrides, func(a, b Override) int { return compareSubjects(a.Subject, b.Subject) })
	return p
}

// without returns the policies as they would be without the override of a subject.
func (p Policies) without(s falldue.Subject) Policies {
	p.overrides = slices.DeleteFunc(slices.Clone(p.overrides), func(o Override) bool { return o.String() == s.String() })
	return p
}

// Ahead is like the function [Ahead], with the policies in effect, including the steps and the
// ends of overrides. For a task with an unknown policy it returns no attempts, and no error.
func (p Policies) Ahead(t falldue.TaskInfo, most int) (Future, error) {
	list, known := p.spans(t, t.Now)
	if !known {
		return Future{}, nil
	}
	return ahead(t, list, most)
}

// Due returns when a task falls due, and considers the end of an override that is in effect now. It
// returns the zero time if the task's policy is not known, or the task is finished. The policy of a
// task that never failed does not matter.
func (p Policies) Due(t falldue.TaskInfo) time.Time {
	due, _ := p.due(t)
	return due
}

func (p Policies) due(t falldue.TaskInfo) (due time.Time, known bool) {
	if !failed(t) {
		return t.Due(backoff.Policy{}), true
	}
	list, known := p.spans(t, t.Now)
	if !known {
		return time.Time{}, false
	}
	return dueUnder(list, t.UpdatedAt, t.Attempts), true
}

// dueIn returns when a task of a lane of a queue is due whose wait begins at anchor, and
// whether that is known.
func (p Policies) dueIn(queue string, at store.Lane, anchor, now time.Time) (time.Time, bool) {
	t := taskIn(queue, at)
	t.UpdatedAt, t.Now = anchor, now
	return p.due(t)
}

// taskIn returns a task of a lane.
func taskIn(queue string, at store.Lane) falldue.TaskInfo {
	return falldue.TaskInfo{Queue: queue, State: falldue.State(at.State), Key: at.Key, Priority: at.Priority, Kind: at.Kind, Policy: at.Policy, Attempts: at.Attempts}
}

// PolicyByKey returns the per-task policy with a key. The key is the field Policy of a
// [falldue.TaskInfo]. The error wraps [falldue.ErrNotFound] if no such policy is stored.
func (o *Ops) PolicyByKey(ctx context.Context, key string) (backoff.Policy, error) {
	texts, err := o.store.Policies(ctx, []string{key})
	if err != nil {
		return backoff.Policy{}, err
	}
	if _, ok := texts[key]; !ok {
		return backoff.Policy{}, store.Missing(fmt.Sprintf("falldue: no per-task policy has the key %.100q", key))
	}
	return store.PolicyOf(texts, key)
}
