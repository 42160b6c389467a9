package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// TaskPolicies has the per-task policies that a worker knows. It is a role: it reads many policies
// with one statement, while sweeps and claims leave out the lanes with unknown policies and go on.
// The text of a key never changes, so that a policy stays valid once it is read.
type TaskPolicies struct {
	table  policyTable
	stored storedPolicies
	events events
	health *HealthReport // is told which policies cannot be read
	woken  chan struct{} // signalled when policies are requested

	mu sync.Mutex
	// Recent has the policies that were used last. When Recent is full, it replaces older, and the
	// policies that only older had are forgotten.
	Recent, older map[string]TaskPolicy
	requested     map[string]map[askingLane]func() // what to call when the policy of a key is known
	skipped       map[string]TaskPolicy            // policies that cannot be read, by key
}

// TaskPolicy is a policy, or why it cannot be read.
type TaskPolicy struct {
	Policy  *CompiledPolicy
	Err     error
	retryAt time.Time // when to read it again after an error
}

// askingLane is a lane whose policy is requested.
type askingLane struct {
	queue string
	lane  store.Lane
}

const (
	// retryUnreadable is the time between two tries to read an unreadable policy.
	retryUnreadable = 10 * time.Second
	// keepUnreadable is how long after the time of its next try an unreadable policy is announced.
	// If no lane requests the policy until then, its tasks have ended.
	keepUnreadable = time.Minute
	// maxRecent is the greatest number of policies in Recent, and in older.
	maxRecent = 10_000
)

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
		Recent: map[string]TaskPolicy{}, requested: map[string]map[askingLane]func(){}, skipped: map[string]TaskPolicy{},
	}
}

// PolicyOf returns the per-task policy of a lane, or nil if the policy is not known or cannot be read.
// If later is not nil, an unknown policy is then read, and later is called when it is known.
func (o *TaskPolicies) PolicyOf(queue string, at store.Lane, later func()) *CompiledPolicy {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.Recent[at.Policy]
	if !ok {
		if r, ok = o.older[at.Policy]; ok {
			o.remember(at.Policy, r)
		}
	}
	if ok && (r.Err == nil || time.Now().Before(r.retryAt)) {
		return r.Policy
	}
	if later == nil {
		return nil
	}
	if o.requested[at.Policy] == nil {
		o.requested[at.Policy] = map[askingLane]func(){}
	}
	o.requested[at.Policy][askingLane{queue, at}] = later
	retry.Signal(o.woken)
	return nil
}

func (o *TaskPolicies) remember(key string, r TaskPolicy) {
	if len(o.Recent) >= maxRecent {
		o.older, o.Recent = o.Recent, map[string]TaskPolicy{}
	}
	o.Recent[key] = r
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
	for key := range o.requested {
		if keys = append(keys, key); len(keys) == store.MaxBatch {
			break
		}
	}
	return keys
}

// loaded remembers policies and calls the functions that wait for them.
func (o *TaskPolicies) loaded(policies map[string]TaskPolicy) {
	var ready []func()
	o.mu.Lock()
	for key, r := range policies {
		o.remember(key, r)
		for lane, later := range o.requested[key] {
			if r.Err != nil {
				o.events.unreadablePolicy(lane.queue, lane.lane.Kind, r.Err)
			} else {
				ready = append(ready, later)
			}
		}
		delete(o.requested, key)
	}
	o.mu.Unlock()
	o.report(policies)
	for _, later := range ready {
		later()
	}
}

// report reports the policies that cannot be read, after others have been loaded. It returns in how
// long to call it again.
func (o *TaskPolicies) report(policies map[string]TaskPolicy) time.Duration {
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
func (o *TaskPolicies) Load(ctx context.Context, keys []string) (map[string]TaskPolicy, error) {
	texts, err := o.readTexts(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	o.stored.Stored(texts)
	policies := make(map[string]TaskPolicy, len(keys))
	var parsed []string // keys
	var compiled []*CompiledPolicy
	for _, key := range keys {
		text, ok := texts[key]
		if !ok {
			policies[key] = unreadable(fmt.Errorf("policy %s is not in the policies table", key))
			continue
		}
		policy, err := backoff.Parse(text)
		if err != nil {
			policies[key] = unreadable(fmt.Errorf("policy %s: %w", key, err))
			continue
		}
		parsed, compiled = append(parsed, key), append(compiled, Compile(policy))
	}
	errs, err := checkDelays(ctx, o.table, compiled)
	for i, key := range parsed {
		if policies[key] = (TaskPolicy{Policy: compiled[i]}); errs[i] != nil {
			policies[key] = unreadable(errs[i])
		}
	}
	return policies, err
}

func (o *TaskPolicies) readTexts(ctx context.Context, keys []string) (map[string]string, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return o.table.Policies(ctx, keys)
}

func unreadable(err error) TaskPolicy {
	return TaskPolicy{Err: err, retryAt: time.Now().Add(retryUnreadable)}
}
