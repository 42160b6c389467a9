package upkeep

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// PolicyStore stores per-task policies before their tasks, and keeps them stored. A
// failover may lose a policy that this process has seen in the table. Tasks that are
// stored later with that policy would never run.
type PolicyStore struct {
	table  policyTable
	events events

	Mu    sync.Mutex
	Known map[string]knownPolicy // by its key
}

// policyTable is the table of policies. Texts are by the policies' keys.
type policyTable interface {
	// PutPolicies stores policies. It reports false if only tx can see them yet.
	PutPolicies(ctx context.Context, tx store.Tx, texts map[string]string) (stored bool, err error)
	MissingPolicies(ctx context.Context, texts map[string]string) (map[string]string, error)
}

// knownPolicy is a policy that this process has seen in the table.
type knownPolicy struct {
	text string
	At   time.Time // when it was last seen there
}

const (
	// keepEvery is how long a policy is assumed to be in the table after it was seen
	// there.
	keepEvery = time.Minute
	// maxKnown is the greatest number of policies that a process keeps stored.
	maxKnown = 10_000
)

// NewPolicyStore returns a store of per-task policies.
func NewPolicyStore(table policyTable, log *slog.Logger) *PolicyStore {
	return &PolicyStore{table: table, events: events{log}, Known: map[string]knownPolicy{}}
}

// StoreAll stores the policies of tasks, by their keys, unless they are in the table already. tx is
// the caller's transaction, or nil.
func (k *PolicyStore) StoreAll(ctx context.Context, tx store.Tx, policies map[string]backoff.Policy) error {
	if len(policies) == 0 {
		return nil
	}
	unsure := map[string]string{}
	now := time.Now()
	k.Mu.Lock()
	for key, policy := range policies {
		if p, ok := k.Known[key]; !ok || now.Sub(p.At) > keepEvery {
			unsure[key] = policy.String()
		}
	}
	k.Mu.Unlock()
	if len(unsure) == 0 {
		return nil
	}
	stored, err := k.table.PutPolicies(ctx, tx, unsure)
	if err != nil {
		return fmt.Errorf("store a policy: %w", err)
	}
	if stored {
		k.Stored(unsure)
	}
	return nil
}

// Stored records that policies are in the table.
func (k *PolicyStore) Stored(texts map[string]string) {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	for key, text := range texts {
		if storable.PolicyKey(text) != key { // an edited row, which must not be stored again
			continue
		}
		k.Known[key] = knownPolicy{text, time.Now()}
		for other := range k.Known {
			if len(k.Known) <= maxKnown {
				break
			}
			delete(k.Known, other)
		}
	}
}

// Work is the role that stores lost policies again, until ctx ends.
func (k *PolicyStore) Work(ctx context.Context) {
	for retry.Pause(ctx, keepEvery+rand.N(keepEvery/10)) == nil {
		if err := k.Restore(ctx); err != nil && ctx.Err() == nil {
			k.events.keepFailed(err)
		}
	}
}

// Restore stores lost policies again: this process has seen them in the table, and they are gone.
func (k *PolicyStore) Restore(ctx context.Context) error {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	texts := map[string]string{}
	k.Mu.Lock()
	for key, p := range k.Known {
		texts[key] = p.text
	}
	k.Mu.Unlock()
	if len(texts) == 0 {
		return nil
	}
	lost, err := k.table.MissingPolicies(ctx, texts)
	if err != nil || len(lost) == 0 {
		return err
	}
	if _, err := k.table.PutPolicies(ctx, nil, lost); err != nil {
		return err
	}
	k.events.policiesRestored(lost)
	return nil
}
