package control

import (
	"iter"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// policyCache has compiled policies by the key of their source, and the lanes that wait for further policies.
// When recent is full, it replaces older, and the policies that only older had are forgotten. The mutex of the
// cache's owner guards the cache.
type policyCache[K comparable] struct {
	recent, older map[K]CachedPolicy
	requested     map[K]map[askingLane]func() // what to call when the policy of a key is known
}

// CachedPolicy is a compiled policy, or why it cannot be applied.
type CachedPolicy struct {
	Policy  *CompiledPolicy // after an error the policy in effect instead, or nil
	Err     error
	retryAt time.Time // when to try again after an error; otherwise zero
}

// askingLane is a lane that waits for its policy.
type askingLane struct {
	queue string
	lane  store.Lane
}

const (
	// retryRefused is the time between two tries to apply a policy.
	retryRefused = 10 * time.Second
	// maxRecent is the greatest number of recent policies, and of older ones.
	maxRecent = 10_000
)

func newPolicyCache[K comparable]() policyCache[K] {
	return policyCache[K]{recent: map[K]CachedPolicy{}, requested: map[K]map[askingLane]func(){}}
}

// refused returns a policy that cannot be applied because of err.
func refused(err error) CachedPolicy {
	return CachedPolicy{Err: err, retryAt: time.Now().Add(retryRefused)}
}

// settled reports whether there is nothing to try again at now.
func (p CachedPolicy) settled(now time.Time) bool { return p.Err == nil || now.Before(p.retryAt) }

// get returns the policy of a key, if it is known, and keeps it among the recent ones.
func (c *policyCache[K]) get(key K) (p CachedPolicy, ok bool) {
	if p, ok = c.recent[key]; ok {
		return p, true
	}
	if p, ok = c.older[key]; ok {
		c.put(key, p)
	}
	return p, ok
}

func (c *policyCache[K]) put(key K, p CachedPolicy) {
	if len(c.recent) >= maxRecent {
		c.older, c.recent = c.recent, map[K]CachedPolicy{}
	}
	delete(c.older, key)
	c.recent[key] = p
}

// policyOf returns the policy in effect for a key, or nil. Unless later is nil, the lane then requests a
// policy that is not known, or that should be tried again, and requested is true.
func (c *policyCache[K]) policyOf(key K, lane askingLane, later func()) (p *CompiledPolicy, requested bool) {
	known, ok := c.get(key)
	if later == nil || ok && known.settled(time.Now()) {
		return known.Policy, false
	}
	if c.requested[key] == nil {
		c.requested[key] = map[askingLane]func(){}
	}
	c.requested[key][lane] = later
	return known.Policy, true
}

// all returns the policies that are known.
func (c *policyCache[K]) all() iter.Seq2[K, CachedPolicy] {
	return func(yield func(K, CachedPolicy) bool) {
		for _, list := range []map[K]CachedPolicy{c.older, c.recent} {
			for key, p := range list {
				if !yield(key, p) {
					return
				}
			}
		}
	}
}

// answer ends all requests, and returns what to call.
func (c *policyCache[K]) answer() (ready []func()) {
	for _, lanes := range c.requested {
		for _, later := range lanes {
			ready = append(ready, later)
		}
	}
	clear(c.requested)
	return ready
}
