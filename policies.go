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

// policies reads the policies of tasks that have one of their own. A policy's key is a
// hash of its text, so the text of a key never changes, and a policy that was read
// once stays valid.
type policies struct {
	store  *store.Store
	keeper *policyKeeper // knows the text of each policy that was read

	mu     sync.Mutex
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

func newPolicies(s *store.Store, k *policyKeeper) *policies {
	return &policies{store: s, keeper: k, loaded: map[string]loadedPolicy{}}
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
	ctx, cancel := statementContext(ctx, statementTimeout)
	defer cancel()
	found, err := p.store.Policies(ctx, []string{key})
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", key, err)
	}
	text, ok := found[key]
	if !ok {
		return nil, fmt.Errorf("policy %s is not in the policies table", key)
	}
	policy, err := backoff.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", key, err)
	}
	if err := p.store.CheckDelays(ctx, []sqlgen.Formula{policy.Delay()}); err != nil {
		return nil, err
	}
	p.keeper.stored(map[string]string{key: text})
	return newRule(policy), nil
}
