package falldue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/migrations"
)

// Queue is falldue on one database, with any number of the named queues that
// tasks wait in: it enqueues, runs handlers and looks after tasks. It is safe for
// concurrent use. Nothing runs before [Queue.Run].
type Queue struct {
	cfg      Config
	store    *store
	policies *policies

	mu       sync.Mutex
	handlers map[string]*handler
	wrong    []error // registrations that Run will refuse
	worker   *worker // while Run runs
}

// handler is a kind and what runs its tasks.
type handler struct {
	kind kind
	rule *rule
	fn   func(ctx context.Context, r *run) error
}

// probeTimeout is how long New waits for the server to say what it is.
const probeTimeout = 15 * time.Second

// New makes a queue on db, whose engine and abilities it asks of the server
// itself, for up to 15 seconds. It neither creates tables (see [Queue.Migrate])
// nor starts anything.
//
// Errors wrap [ErrInvalid] for a configuration, [dialect.ErrUnsupported] for a
// server that is too old or lacks something falldue needs, and
// [dialect.ErrTransactionPooling], too, for a pooler that gives transactions and not
// sessions. Others are the driver's, such as that of a server that does not
// answer.
func New(db *sqlx.DB, cfg Config) (*Queue, error) {
	if db == nil {
		return nil, invalid("the database is nil")
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	server, err := dialect.Probe(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("falldue: %w", err)
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(server); err != nil {
		return nil, err
	}
	s := newStore(db, server, cfg)
	return &Queue{cfg: cfg, store: s, policies: newPolicies(s), handlers: map[string]*handler{}}, nil
}

// Engine is the name of the queue's engine.
func (q *Queue) Engine() dialect.Name { return q.store.server.Name() }

// Migrate creates falldue's tables, or brings them to this release. Any number
// of processes may call it at once. It loses nothing. Its error wraps
// [migrations.ErrNewer] for tables that a newer release has migrated.
func (q *Queue) Migrate(ctx context.Context) error {
	m, err := q.Migrations()
	if err != nil {
		return err
	}
	_, err = m.Up(ctx)
	return err
}

// Migrations gives hold of the migrations one by one: up, down, status.
func (q *Queue) Migrations() (*migrations.Migrator, error) {
	return migrations.New(q.store.db.DB, q.store.server, q.store.tables)
}

func (q *Queue) register(k kind, fn func(ctx context.Context, r *run) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.handlers[k.name]; ok {
		q.wrong = append(q.wrong, invalid("kind %.100q is handled twice", k.name))
	}
	q.wrong = append(q.wrong, k.err)
	q.handlers[k.name] = &handler{k, newRule(k.Policy), fn}
}

// Run works on the configured queues until ctx ends; then it takes no more
// tasks, gives back those it holds but has not started, lets running handlers
// finish for Config.ShutdownTimeout, cancels the rest, waits for them, and returns nil.
// A handler that ignores its context holds Run up, and keeps its lease.
//
// It returns an error at once when there are no handlers or the kind of one is
// invalid ([ErrInvalid]), when the tables are missing or old ([ErrNotMigrated]), when
// the database does not answer, or computes another delay than Go for a policy,
// or when Run runs already. A database that fails later is waited for, not
// returned.
func (q *Queue) Run(ctx context.Context) error {
	q.mu.Lock()
	err := errors.Join(q.wrong...)
	if err == nil && q.worker != nil {
		err = errors.New("falldue: Run runs already")
	}
	if err == nil && len(q.handlers) == 0 {
		err = invalid("there are no handlers; call Handle before Run")
	}
	if err != nil {
		q.mu.Unlock()
		return err
	}
	w := newWorker(q, maps.Clone(q.handlers))
	q.worker = w
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.worker = nil
		q.mu.Unlock()
	}()
	if err := q.preflight(ctx, w); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // told to stop before it began
		}
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.handlers)) {
		if queue := w.handlers[name].kind.Queue; w.pollers[queue] == nil {
			q.cfg.Logger.Warn("falldue: tasks of a kind wait in a queue that this worker does not work on", "kind", name, "queue", queue)
		}
	}
	w.run(ctx)
	return nil
}

// preflight asks the database for the delays of all policies and for the tables.
func (q *Queue) preflight(ctx context.Context, w *worker) error {
	list := make([]backoff.Policy, 0, len(w.handlers))
	for _, name := range slices.Sorted(maps.Keys(w.handlers)) {
		list = append(list, w.handlers[name].kind.Policy)
	}
	if err := q.store.check(ctx, list); err != nil {
		return err
	}
	const none = "" // queue: whether there are tables is all that it asks
	if _, err := q.store.sweep(ctx, none); err != nil {
		return fmt.Errorf("falldue: look for tasks: %w", err)
	}
	return nil
}

// Wake makes this process's worker, if it runs, look for tasks at once instead
// of at its next poll. Call it after the commit of a transaction that tasks were
// enqueued in; Enqueue without a transaction does it by itself.
func (q *Queue) Wake() {
	q.mu.Lock()
	w := q.worker
	q.mu.Unlock()
	if w == nil {
		return
	}
	for _, p := range w.pollers {
		p.look()
	}
}

// wake tells this process's worker, if it runs, of tasks just enqueued, so
// that they need not wait for its next poll.
func (q *Queue) wake(entries []entry) {
	q.mu.Lock()
	w := q.worker
	q.mu.Unlock()
	if w == nil {
		return
	}
	for _, e := range entries {
		if p := w.pollers[e.queue]; p != nil {
			wait := e.delay
			if at, ok := e.at.(int64); ok {
				wait = time.Until(time.UnixMicro(at)) // by a clock that may be wrong: only the poller's sleep rests on it
			}
			p.tell(lane{state: statements.StateOpen, priority: e.priority, kind: e.kind, policy: e.policy}, wait)
		}
	}
}
