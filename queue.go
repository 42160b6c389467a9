package falldue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
	"github.com/falldue/falldue/internal/worker"
	"github.com/falldue/falldue/migrations"
	"github.com/jmoiron/sqlx"
)

// Queue enqueues tasks, runs their handlers and inspects tasks, on one database. The database holds any number of named
// queues in which tasks wait. A Queue is safe for concurrent use. Before [Queue.Run] it starts no goroutines, except
// short ones that notify workers after an enqueue ([Notifications]).
type Queue struct {
	cfg      Config
	db       *sqlx.DB
	store    *store.Store
	policies *upkeep.PolicyStore
	notifier *upkeep.Notifier // nil if no worker is notified, or each enqueue notifies in its transaction

	observer *publisher
	life     worker.Life
	// aroundEnqueue stores tasks by way of the users' middleware; nil if there is none.
	aroundEnqueue atomic.Pointer[EnqueueFunc]

	mu          sync.Mutex
	kinds       map[string]registration                                 // by name
	steppers    []changesReader                                         // that package tasktest uses
	handlerErrs []error                                                 // errors of Handle, Use and UseEnqueue, which Run returns
	tickers     []func(context.Context) (next time.Duration, err error) // of package periodic
	use         []Middleware
	useEnqueue  []EnqueueMiddleware
}

// probeTimeout bounds the time in which New finds out the server's engine.
const probeTimeout = 15 * time.Second

// New returns a queue on db. It asks the server for its engine and version, and waits up to
// 15 seconds for the answers. New neither creates tables (see [Queue.Migrate]) nor starts
// anything.
//
// The error wraps [ErrInvalid] for an invalid configuration, and [dialect.ErrUnsupported]
// for a server that is too old or lacks a feature that falldue needs. Behind a connection
// pooler that assigns sessions to transactions, a driver may need a parameter: then the
// error also wraps [dialect.ErrTransactionPooling] and names the parameter. Any other error
// is the driver's, for example when the server does not answer.
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
		Tables: cfg.tables(), Notify: cfg.Notifications.ownTx(), NotifyTx: cfg.Notifications.callersTx(),
	})
	q := &Queue{
		cfg: cfg, db: db, store: s, policies: upkeep.NewPolicyStore(s, cfg.Logger), kinds: map[string]registration{},
		observer: &publisher{hooks: cfg.Hooks, log: cfg.Logger, classify: server.Classify},
	}
	if server.Caps.Notify && !cfg.Notifications.ownTx() {
		q.notifier = upkeep.NewNotifier(s)
	}
	return q, nil
}

// Engine returns the name of the queue's database engine.
func (q *Queue) Engine() dialect.Name { return q.store.Server().Name() }

// Migrate creates falldue's tables, or migrates them to this release. It keeps all tasks. Any
// number of processes may call Migrate concurrently: one does the work, and the others wait
// for up to 5 minutes. The error wraps [migrations.ErrNewer] for tables that a newer release
// has migrated, and [migrations.ErrForeign] for tables that another tool has created.
func (q *Queue) Migrate(ctx context.Context) error {
	m, err := q.Migrations()
	if err != nil {
		return err
	}
	_, err = m.Up(ctx)
	return err
}

// Migrations returns the migrations of the queue's tables, to run or undo them one by
// one, or to see which are pending.
func (q *Queue) Migrations() (*migrations.Migrator, error) {
	return migrations.New(q.db.DB, q.store.Server(), q.cfg.tables())
}

// warnIfRunning reports a call that takes effect only with the next Run.
func (q *Queue) warnIfRunning(call string, attrs ...any) {
	if q.life.Worker() != nil {
		q.cfg.Logger.Error("falldue: "+call+" was called while Run is running; the worker ignores it until Run is called again", attrs...)
	}
}

func (q *Queue) register(k kind, fn handlerFunc, own []Middleware) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.warnIfRunning("Handle", "kind", k.name)
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

// Use adds middleware around the handlers of all kinds. The first middleware is outermost, and a kind's middleware
// ([Handle]) is inside. Call Use before [Queue.Run]: a running worker continues without the middleware. If one of the
// middleware is nil, Run returns an error that wraps [ErrInvalid].
func (q *Queue) Use(list ...Middleware) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.warnIfRunning("Use")
	list, err := given("Use", list)
	q.handlerErrs = append(q.handlerErrs, err)
	q.use = append(q.use, list...)
}

// UseEnqueue adds middleware around all calls that enqueue tasks through this Queue, inside or
// outside the caller's transaction. The first middleware is outermost. The middleware also runs
// for each tick of package periodic, but not for retried tasks ([Queue.Retry]) or for tasks
// inserted by SQL. If one of the middleware is nil, the calls that enqueue and [Queue.Run] return
// an error that wraps [ErrInvalid].
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

// Subscribe returns the events of this process's worker from now on, while Run is running. Close the subscription
// when nothing receives from it any more. Pass options at most once, or Run returns an error that wraps [ErrInvalid].
func (q *Queue) Subscribe(opts ...SubscribeOptions) *Subscription {
	o, err := oneOf(opts)
	if err != nil {
		q.mu.Lock()
		q.handlerErrs = append(q.handlerErrs, err)
		q.mu.Unlock()
	}
	s := newSubscription(o, q.observer.Remove)
	q.observer.Add(s)
	return s
}
