package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/worker"
)

// Ops inspects the tasks of a queue. It is safe for concurrent use.
type Ops struct {
	queue    *falldue.Queue
	inside   queue
	store    *store.Store
	policies map[string]backoff.Policy // of WithPolicies
	checks   time.Duration             // how long each check of Diagnose may take

	estimates estimates

	mu      sync.Mutex
	perTask float64 // seconds that the last profile took for each task, or 0
}

// queue is what this package uses of a *falldue.Queue beyond its API.
type queue interface {
	Store() *store.Store
	// WorkerConfig has what a worker of the queue would announce.
	WorkerConfig() worker.Config
	TaskInfos(rows []store.Task) []falldue.TaskInfo
	Change(ctx context.Context, s falldue.Subject, until time.Time, c store.Change) error
	Acted(ctx context.Context, a store.Action, acted store.Acted)
	// StoredEntry returns a task as an enqueue stores it.
	StoredEntry(p falldue.EnqueueParams) (store.Entry, error)
	// ExistsError returns an error of the store as the public package has it.
	ExistsError(err error) error
}

// New returns the Ops of a queue. It uses the queue's connections, tables and codec, and reads
// nothing yet. The queue need not handle any kinds.
func New(q *falldue.Queue) *Ops {
	inside := hooks.Of[queue](q)
	return &Ops{queue: q, inside: inside, store: inside.Store(), checks: checkLimit}
}

// WithPolicies returns an Ops that uses the given policies, by the names of their kinds, for example because no live
// worker handles these kinds. The policy of the kind "" applies to all other kinds. The given policies take precedence,
// then the policies of the kinds that the queue handles, and then the policies that live workers announce. If the
// policy of a kind is unknown, so are the due times of its failed tasks. WithPolicies returns an error if a policy is
// invalid.
func (o *Ops) WithPolicies(policies map[string]backoff.Policy) (*Ops, error) {
	for _, kind := range slices.Sorted(maps.Keys(policies)) {
		if err := policies[kind].Err(); err != nil {
			return nil, fmt.Errorf("ops: policy of kind %.100q: %w", kind, err)
		}
	}
	return &Ops{queue: o.queue, inside: o.inside, store: o.store, policies: maps.Clone(policies), checks: o.checks}, nil
}
