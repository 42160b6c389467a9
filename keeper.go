package falldue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// policyKeeper stores the policies of tasks that have one of their own before the
// tasks, and keeps them stored. A failover may lose a policy that this process has
// seen in the table. Tasks that are stored later with that policy would never run.
type policyKeeper struct {
	put     func(ctx context.Context, tx store.Tx, texts map[string]string) (stored bool, err error)
	missing func(ctx context.Context, texts map[string]string) (map[string]string, error)
	events  events

	mu    sync.Mutex
	known map[string]knownPolicy // by its key
}

// knownPolicy is a policy that this process has seen in the table.
type knownPolicy struct {
	text string
	at   time.Time // when it was last seen there
}

const (
	// keepEvery is how long a policy is assumed to be in the table after it was seen
	// there.
	keepEvery = time.Minute
	// maxKnown is the greatest number of policies that a process keeps stored.
	maxKnown = 10_000
)

func newPolicyKeeper(s *store.Store, e events) *policyKeeper {
	return &policyKeeper{put: s.PutPolicies, missing: s.MissingPolicies, events: e, known: map[string]knownPolicy{}}
}

// stage stores the policies of tasks that have one of their own.
func (k *policyKeeper) stage(ctx context.Context, tx Tx, tasks *pending) error {
	unsure := map[string]string{}
	now := time.Now()
	k.mu.Lock()
	for key, policy := range tasks.policies {
		if p, ok := k.known[key]; !ok || now.Sub(p.at) > keepEvery {
			unsure[key] = policy.String()
		}
	}
	k.mu.Unlock()
	if len(unsure) == 0 {
		return nil
	}
	stored, err := k.put(ctx, tx, unsure)
	if err != nil {
		return fmt.Errorf("store a policy: %w", err)
	}
	if stored {
		k.stored(unsure)
	}
	return nil
}

// stored records that policies are in the table.
func (k *policyKeeper) stored(texts map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, text := range texts {
		k.known[key] = knownPolicy{text, time.Now()}
		for other := range k.known {
			if len(k.known) <= maxKnown {
				break
			}
			delete(k.known, other)
		}
	}
}

// work is the role that stores lost policies again, until ctx ends.
func (k *policyKeeper) work(ctx context.Context) {
	for pause(ctx, keepEvery+rand.N(keepEvery/10)) == nil {
		if err := k.restore(ctx); err != nil && ctx.Err() == nil {
			k.events.keepFailed(err)
		}
	}
}

// restore stores those policies again that this process has seen in the table and that
// are not there now.
func (k *policyKeeper) restore(ctx context.Context) error {
	ctx, cancel := statementContext(ctx, statementTimeout)
	defer cancel()
	texts := map[string]string{}
	k.mu.Lock()
	for key, p := range k.known {
		texts[key] = p.text
	}
	k.mu.Unlock()
	if len(texts) == 0 {
		return nil
	}
	lost, err := k.missing(ctx, texts)
	if err != nil || len(lost) == 0 {
		return err
	}
	if _, err := k.put(ctx, nil, lost); err != nil {
		return err
	}
	k.events.policiesRestored(lost)
	return nil
}
