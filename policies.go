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

// policies knows the policies that tasks were enqueued with, by the key of
// their text. A text never changes under its key, so that what was read once
// stays valid.
type policies struct {
	store *store.Store

	mu     sync.Mutex
	stored map[string]bool // known to be in the table
	loaded map[string]loadedPolicy
}

type loadedPolicy struct {
	rule  *rule
	err   error
	again time.Time // when to look again after an error
}

const (
	// retryBroken is how long a policy that could not be read is left alone.
	retryBroken = 10 * time.Second
	// maxLoaded bounds the policies a process remembers.
	maxLoaded = 10_000
)

func newPolicies(s *store.Store) *policies {
	return &policies{store: s, stored: map[string]bool{}, loaded: map[string]loadedPolicy{}}
}

// stage stores the policies that tasks bring, in one order, so that no two
// transactions wait for each other's.
func (p *policies) stage(ctx context.Context, tx Tx, list []pending) error {
	var brought map[string]backoff.Policy
	for _, e := range list {
		if e.policy == nil {
			continue
		}
		if brought == nil {
			brought = map[string]backoff.Policy{}
		}
		brought[e.Policy] = *e.policy
	}
	for _, key := range slices.Sorted(maps.Keys(brought)) {
		if err := p.put(ctx, tx, key, brought[key]); err != nil {
			return fmt.Errorf("store a policy: %w", err)
		}
	}
	return nil
}

// put stores p under its key: in the caller's transaction, or by itself where
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

// get returns the policy of a key. Its error says what is wrong with that
// policy alone, or with the database.
func (p *policies) get(ctx context.Context, key string) (*rule, error) {
	p.mu.Lock()
	l, ok := p.loaded[key]
	p.mu.Unlock()
	if ok && (l.err == nil || time.Now().Before(l.again)) {
		return l.rule, l.err
	}
	l.rule, l.err = p.load(ctx, key)
	l.again = time.Now().Add(retryBroken)
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
