package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// TaskPolicies has the per-task policies that a worker knows. It is a role, which reads many policies
// with one statement. In the meantime, sweeps and claims leave out the lanes with unknown policies.
// The text of a key never changes, so a policy stays valid once it is read.
type TaskPolicies struct {
	table  policyTable
	stored storedPolicies
	events events
	health *HealthReport // is told which policies cannot be read
	woken  chan struct{} // signalled when policies are requested

	mu      sync.Mutex
	cache   policyCache[string]     // by the keys of policies
	skipped map[string]CachedPolicy // policies that cannot be read, by key
}

// keepUnreadable is how long an unreadable policy is announced after the time of its next try.
// If no lane has requested the policy by then, its tasks have ended.
const keepUnreadable = time.Minute

// policyTable is the table of policies.
type policyTable interface {
	delayChecker
	// Policies returns the texts of policies, by their keys.
	Policies(ctx context.Context, keys []string) (texts map[string]string, err error)
}

// storedPolicies is told which policies are in the table.
type storedPolicies interface {
	Stored(texts map[string]string)
}

// NewTaskPolicies returns the policies of tasks in a table.
func NewTaskPolicies(table policyTable, stored storedPolicies, health *HealthReport, log *slog.Logger) *TaskPolicies {
	return &TaskPolicies{
		table: table, stored: stored, events: events{log}, health: health, woken: make(chan struct{}, 1),
		cache: newPolicyCache[string](), skipped: map[string]CachedPolicy{},
	}
}

// PolicyOf returns the per-task policy of a lane, or nil if the policy is not known or cannot be read.
// If later is not nil, an unknown policy is then read, and later is called when the policy is known.
func (o *TaskPolicies) PolicyOf(queue string, at store.Lane, later func()) *CompiledPolicy {
	o.mu.Lock()
	defer o.mu.Unlock()
	policy, requested := o.cache.policyOf(at.Policy, askingLane{queue, at}, later)
	if requested {
		retry.Signal(o.woken)
	}
	return policy
}

// Work reads the requested policies until ctx ends.
func (o *TaskPolicies) Work(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		keys := o.next()
		if len(keys) == 0 {
			retry.Await(ctx, o.woken, o.report(nil))
			continue
		}
		start := time.Now()
		policies, err := o.Load(ctx, keys)
		if err != nil {
			if ctx.Err() == nil {
				o.events.policiesFailed(len(keys), err)
				_ = retry.Pause(ctx, retry.ErrorPause(failures)) // the loop ends with ctx
			}
			failures++
			continue
		}
		failures = 0
		o.loaded(policies)
		_ = retry.Pause(ctx, time.Since(start)) // claims have half of the time, however many policies are requested
	}
}

// next lists the keys of requested policies, as many as one statement reads.
func (o *TaskPolicies) next() (keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.cache.requested {
		if keys = append(keys, key); len(keys) == store.MaxBatch {
			break
		}
	}
	return keys
}

// loaded remembers policies and calls the functions that wait for them.
func (o *TaskPolicies) loaded(policies map[string]CachedPolicy) {
	var ready []func()
	o.mu.Lock()
	for key, r := range policies {
		o.cache.put(key, r)
		for lane, later := range o.cache.requested[key] {
			if r.Err != nil {
				o.events.unreadablePolicy(lane.queue, lane.lane.Kind, r.Err)
			} else {
				ready = append(ready, later)
			}
		}
		delete(o.cache.requested, key)
	}
	o.mu.Unlock()
	o.report(policies)
	for _, later := range ready {
		later()
	}
}

// report reports the policies that cannot be read, after others have been loaded. It returns in how
// long to call it again.
func (o *TaskPolicies) report(policies map[string]CachedPolicy) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, r := range policies {
		if delete(o.skipped, key); r.Err != nil {
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
		wait, errs[key] = min(wait, left), r.Err
	}
	o.health.skip(errs)
	return wait
}

// Load reads the policies of keys, and checks that the database computes their delays as Go does.
func (o *TaskPolicies) Load(ctx context.Context, keys []string) (map[string]CachedPolicy, error) {
	texts, err := o.readTexts(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	o.stored.Stored(texts)
	policies := make(map[string]CachedPolicy, len(keys))
	var parsed []string // keys
	var compiled []*CompiledPolicy
	for _, key := range keys {
		policy, err := store.PolicyOf(texts, key)
		if err != nil {
			policies[key] = refused(err)
			continue
		}
		parsed, compiled = append(parsed, key), append(compiled, Compile(policy))
	}
	checked, err := check(ctx, o.table, compiled)
	for i, key := range parsed {
		policies[key] = checked[i]
	}
	return policies, err
}

func (o *TaskPolicies) readTexts(ctx context.Context, keys []string) (map[string]string, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return o.table.Policies(ctx, keys)
}
