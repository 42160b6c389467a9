package falldue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// policies stores and reads the policies of tasks that have one of their own. A
// policy's key is a hash of its text, so the text of a key never changes, and a
// policy that was read once stays valid.
type policies struct {
	store *store.Store

	mu     sync.Mutex
	stored map[string]bool // keys that are known to be in the table
	loaded map[string]loadedPolicy
}

type loadedPolicy struct {
	rule    *rule
	err     error
	retryAt time.Time // when to read it again after an error
}

const (
	// retryUnreadable is the time between two tries to read an unreadable policy.
	retryUnreadable = 10 * time.Second
	// maxLoaded is the greatest number of policies that a process remembers.
	maxLoaded = 10_000
)

func newPolicies(s *store.Store) *policies {
	return &policies{store: s, stored: map[string]bool{}, loaded: map[string]loadedPolicy{}}
}

// stage stores the policies of the tasks that have one of their own. It stores
// them in the order of their keys, so that two transactions do not deadlock.
func (p *policies) stage(ctx context.Context, tx Tx, tasks *pending) error {
	if tasks.policies == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(tasks.policies)) {
		if err := p.put(ctx, tx, key, tasks.policies[key]); err != nil {
			return fmt.Errorf("store a policy: %w", err)
		}
	}
	return nil
}

// put stores a policy under its key, in the caller's transaction, or in its own if
// tx is nil.
func (p *policies) put(ctx context.Context, tx Tx, key string, policy backoff.Policy) error {
	p.mu.Lock()
	known := p.stored[key]
	p.mu.Unlock()
	if known {
		return nil
	}
	err := p.store.PutPolicy(ctx, tx, key, policy.String())
	if err == nil && tx == nil {
		p.mu.Lock()
		if len(p.stored) >= maxLoaded {
			clear(p.stored)
		}
		p.stored[key] = true
		p.mu.Unlock()
	}
	return err
}

// get returns the policy of a key.
func (p *policies) get(ctx context.Context, key string) (*rule, error) {
	p.mu.Lock()
	l, ok := p.loaded[key]
	p.mu.Unlock()
	if ok && (l.err == nil || time.Now().Before(l.retryAt)) {
		return l.rule, l.err
	}
	l.rule, l.err = p.load(ctx, key)
	l.retryAt = time.Now().Add(retryUnreadable)
	p.mu.Lock()
	if len(p.loaded) >= maxLoaded {
		clear(p.loaded)
	}
	p.loaded[key] = l
	p.mu.Unlock()
	return l.rule, l.err
}

func (p *policies) load(ctx context.Context, key string) (*rule, error) {
	text, found, err := p.store.Policy(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", key, err)
	}
	if !found {
		return nil, fmt.Errorf("policy %s is not in the policies table", key)
	}
	policy, err := backoff.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", key, err)
	}
	if err := p.store.CheckDelays(ctx, []sqlgen.Formula{policy.Delay()}); err != nil {
		return nil, err
	}
	return newRule(policy), nil
}
