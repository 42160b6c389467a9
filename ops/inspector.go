package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// Config says where the tables are, and which policies the code has.
type Config struct {
	// Prefix and Schema are those of [falldue.Config].
	Prefix, Schema string
	// Policies are the policies of kinds, by kind, as the code that handles them has them.
	// That of the kind "" is for all other kinds. The tables have the policies that tasks have
	// of their own, and those of the kinds that live workers handle. Without that of another
	// kind it is not known when its tasks that have failed are due.
	Policies map[string]backoff.Policy
}

// Inspector reads falldue's tables. It changes nothing, and is safe for concurrent use.
type Inspector struct {
	queue    *falldue.Queue
	store    *store.Store
	tables   dialect.Tables
	policies map[string]backoff.Policy

	mu      sync.Mutex
	learned map[string]bool // kinds that have the policy of all other kinds
	perTask float64         // seconds that the last profile took for each task, or 0
}

// NewInspector returns an inspector of the tables on db. It asks the server for its engine
// and version. Its errors are those of [falldue.New], and of a policy that is invalid.
func NewInspector(db *sqlx.DB, cfg Config) (*Inspector, error) {
	queue, err := falldue.New(db, falldue.Config{Prefix: cfg.Prefix, Schema: cfg.Schema})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	server, err := dialect.Probe(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("ops: %w", err)
	}
	for _, kind := range slices.Sorted(maps.Keys(cfg.Policies)) {
		p := cfg.Policies[kind]
		if err := p.Err(); err != nil {
			return nil, fmt.Errorf("ops: policy of kind %.100q: %w", kind, err)
		}
		if kind != "" { // the queue knows the policies of kinds that it handles
			falldue.Handle(queue, falldue.NewKind[json.RawMessage](kind, falldue.KindConfig{Policy: p}), never)
		}
	}
	tables := dialect.Tables{Prefix: cfg.Prefix, Schema: cfg.Schema}
	if tables.Prefix == "" {
		tables.Prefix = "falldue_"
	}
	s := store.New(db, store.ServerOn(db, server), store.Options{Tables: tables})
	return &Inspector{queue: queue, store: s, tables: tables, policies: maps.Clone(cfg.Policies), learned: map[string]bool{}}, nil
}

// probeTimeout bounds the time in which NewInspector finds out the server's engine.
const probeTimeout = 15 * time.Second

// never is the handler of kinds whose tasks are looked at and not run.
func never(context.Context, falldue.Task[json.RawMessage]) error { return nil }

// Queue describes a named queue.
type Queue struct {
	Name string
	// Kinds are the kinds of the tasks that wait or run.
	Kinds []string
	// Blocked are the kinds of the tasks that are blocked: that run after others. A [Pulse]
	// leaves them out.
	Blocked []string
	// Lanes is the number of lanes that have tasks which wait or run. Sweeps take longer the more there
	// are.
	Lanes int
	// FirstDue is when the first of those tasks is due, or was, as far as their policies
	// are known. It is zero if none is known.
	FirstDue time.Time
	// Now is the time of the database's clock when the queue was read.
	Now time.Time
}

// Queues lists the queues that have tasks, in any state. It jumps from lane to lane in the
// index, and costs no more if more tasks wait.
func (i *Inspector) Queues(ctx context.Context) ([]Queue, error) {
	list, err := i.waiting(ctx)
	if err != nil {
		return nil, err
	}
	for n, q := range list {
		heads, err := i.store.FinishedLanes(ctx, q.Name, string(falldue.Blocked))
		if err != nil {
			return nil, err
		}
		list[n].Blocked = kindsOf(heads)
	}
	return list, nil
}

// waiting is [Inspector.Queues] without the kinds that are blocked.
func (i *Inspector) waiting(ctx context.Context) ([]Queue, error) {
	names, err := i.store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Queue, 0, len(names))
	for _, name := range names {
		heads, err := i.store.NewLaneFinder(name).Find(ctx)
		if err != nil {
			return nil, err
		}
		known, err := i.Policies(ctx, policyKeys(heads)...)
		if err != nil {
			return nil, err
		}
		q := Queue{Name: name, Kinds: kindsOf(heads), Lanes: len(heads)}
		for _, h := range heads {
			q.Now = store.Time(h.Now)
			if due, ok := known.dueIn(name, h.Lane, store.Time(h.Anchor), q.Now); ok && h.Corrupt == nil {
				if q.FirstDue.IsZero() || due.Before(q.FirstDue) {
					q.FirstDue = due
				}
			}
		}
		list = append(list, q)
	}
	return list, nil
}

// kindsOf returns the kinds of lanes, sorted.
func kindsOf(heads []store.Head) (kinds []string) {
	for _, h := range heads {
		kinds = append(kinds, h.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// KnowsKind reports whether a task of a kind waits, runs or is blocked, or a live worker handles the kind. The
// name of one of which nobody knows may be mistyped. It reports true if the workers cannot be
// read, for which a user may not have the right.
func (i *Inspector) KnowsKind(ctx context.Context, kind string) (bool, error) {
	queues, err := i.Queues(ctx)
	if err != nil || slices.ContainsFunc(queues, func(q Queue) bool { return slices.Contains(q.Kinds, kind) || slices.Contains(q.Blocked, kind) }) {
		return err == nil, err
	}
	workers, err := i.Workers(ctx)
	if err != nil {
		return true, nil //nolint:nilerr // see above
	}
	_, handled := KindPolicies(workers)[kind]
	return handled, nil
}

func policyKeys(heads []store.Head) (keys []string) {
	for _, h := range heads {
		keys = append(keys, h.Policy)
	}
	return keys
}

// Find is [falldue.Queue.Find], with the policies of [Config].
func (i *Inspector) Find(ctx context.Context, f falldue.TaskFilter) (falldue.Page, error) {
	if err := i.learnKinds(ctx); err != nil {
		return falldue.Page{}, err
	}
	return i.queue.Find(ctx, f)
}

// Phases is [falldue.Queue.Phases], with the policies of [Config].
func (i *Inspector) Phases(ctx context.Context, tasks []falldue.TaskInfo) ([]falldue.Phase, error) {
	if err := i.learnKinds(ctx); err != nil {
		return nil, err
	}
	return i.queue.Phases(ctx, tasks)
}

// learnKinds makes the queue know the policy of kinds that are not in [Config], if there is
// one for them.
func (i *Inspector) learnKinds(ctx context.Context) error {
	policy, ok := i.policies[""]
	if !ok {
		return nil
	}
	queues, err := i.waiting(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, q := range queues {
		for _, kind := range q.Kinds {
			if _, known := i.policies[kind]; !known && !i.learned[kind] {
				i.learned[kind] = true
				falldue.Handle(i.queue, falldue.NewKind[json.RawMessage](kind, falldue.KindConfig{Policy: policy}), never)
			}
		}
	}
	return err
}
