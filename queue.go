package falldue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/migrations"
	"github.com/falldue/falldue/sqlgen"
)

// Queue enqueues tasks, runs their handlers and inspects tasks, on one database.
// The database holds any number of named queues in which tasks wait. A Queue is
// safe for concurrent use. It starts no goroutine before [Queue.Run], but for those that
// send notices after an enqueue (see Config.Notify) and end at once.
type Queue struct {
	cfg     Config
	db      *sqlx.DB
	store   *store.Store
	keeper  *policyKeeper
	notices *notices // nil if nobody is notified, or each enqueue does so itself
	insert  enqueueFunc
	about   aboutCounts

	observer *observer
	// aroundEnqueue stores tasks by way of the users' middleware; nil if there is none.
	aroundEnqueue atomic.Pointer[EnqueueFunc]

	mu          sync.Mutex
	kinds       map[string]registration // by name
	stepping    []*changeReader         // of tasks that package tasktest runs
	handlerErrs []error                 // errors of Handle, Use and UseEnqueue, which Run returns
	worker      *worker                 // nil unless Run is running
	tickers     []hooks.Ticker
	use         []Middleware
	useEnqueue  []EnqueueMiddleware
}

// probeTimeout bounds the time in which New finds out the server's engine.
const probeTimeout = 15 * time.Second

// New returns a queue on db. It asks the server for its engine and version, and
// waits up to 15 seconds for the answers. New neither creates tables (see
// [Queue.Migrate]) nor starts anything.
//
// The error wraps [ErrInvalid] for an invalid configuration,
// [dialect.ErrUnsupported] for a server that is too old or lacks something
// falldue needs, and [dialect.ErrTransactionPooling] as well behind a connection
// pooler that assigns sessions to transactions, if the driver needs a parameter for
// that. The error names the parameter. Any other error is the driver's, for example
// when the server does not answer.
func New(db *sqlx.DB, cfg Config) (*Queue, error) {
	if db == nil {
		return nil, invalid("the database is nil")
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	server, err := dialect.Probe(ctx, db)
	if err == nil && cfg.TransactionPooling && !server.Caps.TransactionPooling {
		server, err = dialect.PoolTransactions(ctx, db, server)
	}
	if err != nil {
		return nil, fmt.Errorf("falldue: %w", err)
	}
	return newQueue(db, store.ServerOn(db, server), cfg)
}

// newQueue returns a queue on a server that New has probed.
func newQueue(db *sqlx.DB, server dialect.Server, cfg Config) (*Queue, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(server); err != nil {
		return nil, err
	}
	s := store.New(db, server, store.Options{
		Tables: cfg.tables(), Notify: cfg.Notify, NotifyTx: cfg.Notify || cfg.Listen != nil && !cfg.QuietTx,
	})
	keeper := newPolicyKeeper(s, events{cfg.Logger})
	q := &Queue{cfg: cfg, db: db, store: s, keeper: keeper, kinds: map[string]registration{},
		observer: &observer{hooks: cfg.Hooks, log: cfg.Logger, classify: server.Classify},
	}
	if server.Caps.Notify && !cfg.Notify {
		q.notices = &notices{send: s.Notify}
	}
	insert := enqueueFunc(func(ctx context.Context, tx Tx, tasks *pending) ([]Receipt, error) {
		if tasks.uniques != nil {
			return enqueueUnique(ctx, s, tx, tasks)
		}
		if tasks.flow != nil {
			return receiptsOf(s.EnqueueFlow(ctx, tx, tasks.entries, *tasks.flow))
		}
		return receiptsOf(s.Enqueue(ctx, tx, tasks.entries))
	})
	q.insert = chain(insert, q.wakeWorkers, inStages(keeper))
	return q, nil
}

// Engine returns the name of the queue's database engine.
func (q *Queue) Engine() dialect.Name { return q.store.Server().Name() }

// Migrate creates falldue's tables, or migrates them to this release. It keeps
// all tasks. Any number of processes may call it at once: one does the work, and the
// others wait for up to 5 minutes. Its error wraps [migrations.ErrNewer] for tables
// that a newer release has migrated, and [migrations.ErrForeign] for tables that
// another tool has created.
func (q *Queue) Migrate(ctx context.Context) error {
	m, err := q.Migrations()
	if err != nil {
		return err
	}
	_, err = m.Up(ctx)
	return err
}

// Migrations returns the migrations of the queue's tables, to run them one by
// one, to undo them, or to see which are pending.
func (q *Queue) Migrations() (*migrations.Migrator, error) {
	return migrations.New(q.db.DB, q.store.Server(), q.cfg.tables())
}

func (q *Queue) register(k kind, fn handlerFunc, own []Middleware) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.kinds[k.name]; ok {
		q.handlerErrs = append(q.handlerErrs, invalid("kind %.100q is handled twice", k.name))
	}
	q.handlerErrs = append(q.handlerErrs, k.err)
	own, err := given("Handle", own)
	q.handlerErrs = append(q.handlerErrs, err)
	if k.Policy.IsZero() {
		k.Policy = q.cfg.DefaultPolicy
	}
	q.kinds[k.name] = registration{k, chain(fn, limitTime(k.Timeout), addCause, recoverPanics), own}
}

// registration is a kind with its handler.
type registration struct {
	kind
	fn         handlerFunc // without middleware of users
	middleware []Middleware
}

// handlers returns the handlers as workers have them, by kind, and the errors of their
// registrations.
func (q *Queue) handlers() (map[string]*handler, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	handlers := make(map[string]*handler, len(q.kinds))
	for name, r := range q.kinds {
		fn := handlerAround(r.fn, slices.Concat(q.use, r.middleware))
		handlers[name] = &handler{
			kind: name, queue: r.Queue, priority: r.Priority, limits: limitsOf("kind "+name, r.Limits),
			lostRetries: r.RetryLostAtOnce, retention: r.retention(q.cfg), rule: newRule(r.Policy),
			run: func(ctx context.Context, t *taskRun) *failure { return failureToEnd(fn(ctx, t)) },
		}
	}
	return handlers, errors.Join(q.handlerErrs...)
}

// Use adds middleware around the handlers of all kinds. What was added first is outermost, and
// that of a kind ([Handle]) is inside. Call it before [Queue.Run]: a worker that runs goes
// on without it. Run returns an error that wraps [ErrInvalid] if one is nil.
func (q *Queue) Use(list ...Middleware) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, err := given("Use", list)
	q.handlerErrs = append(q.handlerErrs, err)
	q.use = append(q.use, list...)
}

// UseEnqueue adds middleware around the calls of this Queue that enqueue, one task or many, in
// a transaction of the caller's or not. What was added first is outermost. Package periodic
// calls it too, for each tick. It does not run for tasks that are retried ([Queue.Retry]), or
// inserted by SQL. If one is nil, these calls and [Queue.Run] return an error that wraps
// [ErrInvalid].
func (q *Queue) UseEnqueue(list ...EnqueueMiddleware) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, err := given("UseEnqueue", list)
	if err != nil {
		q.handlerErrs = append(q.handlerErrs, err)
		list = []EnqueueMiddleware{refuse(err)}
	}
	q.useEnqueue = append(q.useEnqueue, list...)
	q.aroundEnqueue.Store(enqueueAround(q.storeParams, q.useEnqueue))
}

// Subscribe returns the events of the worker of this process, while Run is running, from
// now on. Close the subscription when nobody receives from it any more.
func (q *Queue) Subscribe(o SubscribeOptions) *Subscription {
	s := newSubscription(o, q.observer.remove)
	q.observer.add(s)
	return s
}

// Run claims tasks from the configured queues and runs their handlers until ctx
// ends. Then it claims no more tasks and gives back the ones whose handlers have
// not started. It waits up to Config.ShutdownTimeout for running handlers,
// cancels the contexts of the others, waits for them too, and returns nil. Run
// does not return before a handler that ignores its context, and it keeps
// extending the lease of that handler's task.
//
// Run returns an error at once
//   - when there are no handlers, the kind of one is invalid, or a handler or middleware is nil
//     ([ErrInvalid]),
//   - when the tables are missing or not up to date ([ErrNotMigrated]),
//   - when the database does not answer,
//   - when the database computes another delay than Go for a policy,
//   - when Run is already running.
//
// A database that fails later is logged, and Run tries again until it answers.
func (q *Queue) Run(ctx context.Context) error {
	handlers, err := q.handlers()
	if err == nil && len(handlers) == 0 {
		err = invalid("there are no handlers; call Handle before Run")
	}
	if err != nil {
		return err
	}
	q.mu.Lock()
	if q.worker != nil {
		q.mu.Unlock()
		return errors.New("falldue: Run is already running")
	}
	w := newWorker(q.cfg, q.store, q.keeper, handlers, q.observer)
	q.worker = w
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.worker = nil
		q.mu.Unlock()
	}()
	if err := q.preflight(ctx, handlers); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped before it began
		}
		return err
	}
	if err := w.changes.read(ctx); err != nil { // before the first claim
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped before it began
		}
		return fmt.Errorf("falldue: read what is paused: %w", err)
	}
	w.overrides.refresh(ctx)
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		if queue := handlers[name].queue; w.pollers[queue] == nil {
			events{q.cfg.Logger}.kindWithoutQueue(name, queue)
		}
	}
	if q.db.Stats().MaxOpenConnections == 1 && !q.store.Server().Caps.SingleWriter {
		events{q.cfg.Logger}.oneConnection(q.cfg.Lease)
	}
	defer q.store.Reserve()()
	w.run(ctx)
	return nil
}

// preflight checks that the database computes the delays of all policies as Go
// does, and that the tables are up to date.
func (q *Queue) preflight(ctx context.Context, handlers map[string]*handler) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	delays := make([]sqlgen.Formula, 0, len(handlers))
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		delays = append(delays, handlers[name].rule.policy.Delay())
	}
	if err := q.store.CheckDelays(ctx, delays); err != nil {
		return err
	}
	if err := q.store.CheckTables(ctx); err != nil {
		return fmt.Errorf("falldue: check the tables: %w", err)
	}
	return nil
}

// Wake makes the worker of this process look for tasks at once, and on PostgreSQL the
// workers of other processes that listen, too. Call it after the commit of a transaction
// in which tasks were enqueued. Enqueue without a transaction notifies these workers by
// itself. Wake does not wait for anything.
func (q *Queue) Wake() {
	q.mu.Lock()
	w := q.worker
	q.mu.Unlock()
	if w != nil {
		w.pollers.sweepNow()
	}
	if q.notices != nil {
		q.notices.add("")
	}
}

// enqueued notifies the worker of this process, if Run is running, of tasks that
// were just stored.
func (q *Queue) enqueued(entries []store.Entry) {
	q.mu.Lock()
	w := q.worker
	q.mu.Unlock()
	if w != nil {
		w.enqueued(entries)
	}
}

// wakeWorkers is middleware that notifies the worker of this process, if Run is
// running, and those that listen, of tasks that were stored. It does not know when tx
// commits.
func (q *Queue) wakeWorkers(next enqueueFunc) enqueueFunc {
	return func(ctx context.Context, tx Tx, tasks *pending) ([]Receipt, error) {
		receipts, err := next(ctx, tx, tasks)
		if err == nil && tx == nil {
			q.announce(tasks.stored(receipts))
		}
		return receipts, err
	}
}

// announce notifies the worker of this process, if Run is running, and those that listen,
// of tasks that were just stored.
func (q *Queue) announce(stored []store.Entry) {
	q.enqueued(stored)
	for i, e := range stored {
		if q.notices != nil && (i == 0 || e.Queue != stored[i-1].Queue) {
			q.notices.add(e.Queue)
		}
	}
}
