// Package worker makes a worker of its parts, and starts and stops it.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/claim"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/news"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
)

// Worker is a poller and a dispatcher for each queue, and the settler, the leases and the
// background loops that all queues share. Data flows one way: poller → dispatcher → handler →
// settler.
type Worker struct {
	Config
	stop       context.Context // ends when the worker must stop
	cancelWork context.CancelCauseFunc
	stuck      *run.Stuck
	events     events

	queues      *queues
	pollers     *claim.Pollers
	dispatchers dispatchers
	settler     *run.Settler
	claimed     *lease.Set
	ended       *run.EndedRuns
	leases      *lease.Extender
	progress    *run.ProgressWriter
	flows       *upkeep.FlowKeeper
	changes     *control.ChangeReader
	overrides   *control.Overrides
	perTask     *control.TaskPolicies
	cleaner     *upkeep.Cleaner
	announcer   *upkeep.Announcer
	historian   *upkeep.Historian // nil if the worker keeps no history
	roles       []role
	working     atomic.Bool // its policies and tables have been checked
}

// Config has the settings of a worker. The public package checks them and fills in the
// defaults.
type Config struct {
	ID              string
	Queues          map[string]Queue
	Handlers        map[string]*run.Handler // by kind
	PollInterval    time.Duration
	Lease           time.Duration
	ShutdownTimeout time.Duration
	MaxPayload      int
	Stuck           run.StuckConfig
	Encode          run.Encode
	Decode          run.Decode
	// OthersRetention is for tasks of kinds that the worker does not handle.
	OthersRetention run.Retention
	// Listen may be nil.
	Listen news.Listen
	Info   store.WorkerInfo
	// Opened is called when dependencies have ended and tasks of a queue have become due. Without it
	// the worker searches for the tasks, and notifies workers that listen.
	Opened func(ctx context.Context, queue string)
	// NoHistory means that the worker does not write how its runs have ended.
	NoHistory bool
	Log       *slog.Logger
}

// Queue has the settings of one of a worker's queues.
type Queue struct {
	Concurrency, MaxPrefetch int
	LowShare                 int // a percentage
	Limits                   []store.Limit
}

// observer is told of the work of a worker.
type observer interface {
	run.Observer
	lease.Observer
	claim.Observer
	Overtime(r *run.Run, timeout time.Duration)
	// Trouble is told of a failure of a background loop. The queue may be "".
	Trouble(role, queue string, err error)
}

// counted is an observer that adds up runs for the history.
type counted struct {
	observer
	tally *upkeep.Tally
}

func (c counted) Started(r *run.Run) {
	c.tally.Started(r)
	c.observer.Started(r)
}

func (c counted) Ended(r *run.Run, end outcome.Outcome, next time.Duration) {
	c.tally.Ended(r, end)
	c.observer.Ended(r, end, next)
}

// watched is an observer that looks for limits that count no task.
type watched struct {
	observer
	limits *upkeep.UnusedLimits
}

func (w watched) Started(r *run.Run) {
	w.limits.Started(r)
	w.observer.Started(r)
}

// expired is told of tasks that have not started in time.
type expired struct {
	tally *upkeep.Tally
	flows *upkeep.FlowKeeper
}

func (e expired) Expired(queue, kind string, tasks int) { e.tally.Expired(queue, kind, tasks) }
func (e expired) Ended(members, gone []int64)           { e.flows.Ended(members, gone) }

// A role is a background loop of a worker.
type role interface {
	// Work returns soon after ctx has ended. The worker waits for that.
	Work(ctx context.Context)
}

// effects applies changes to a worker.
type effects struct {
	*lease.Set
	pollers *claim.Pollers
	dispatchers
}

func (e effects) Resumed()         { e.pollers.SweepNow() }
func (e effects) PoliciesChanged() { e.pollers.PoliciesChanged() }

// dispatchers are the dispatchers of a worker, by queue or pattern.
type dispatchers map[string]*run.Dispatcher

// PausedMore releases tasks that are paused now.
func (list dispatchers) PausedMore() {
	for _, d := range list {
		d.GivePausedBack()
	}
}

// Running returns how many handlers of each queue or pattern run.
func (list dispatchers) Running() map[string]int {
	queues := make(map[string]int, len(list))
	for name, d := range list {
		queues[name] = d.Runners.Active()
	}
	return queues
}

// New returns a worker that works until ctx ends. stop ends ctx.
func New(ctx context.Context, stop context.CancelFunc, cfg Config, s *store.Store, policies *upkeep.PolicyStore, o observer) *Worker {
	// Handlers keep running when claims stop. Their context ends when the shutdown timeout has expired.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	work = run.WithGathering(work, run.Gathering{Stop: ctx.Done()})
	return makeWorker(ctx, work, stop, cancel, cfg, s, policies, o)
}

// makeWorker returns a worker that claims until stop ends, and whose handlers have the context
// work. stopNow and cancel end these contexts.
func makeWorker(stop, work context.Context, stopNow context.CancelFunc, cancel context.CancelCauseFunc, cfg Config, s *store.Store, policies *upkeep.PolicyStore, o observer) *Worker {
	log, caps := retry.Sparse(cfg.Log, s.Classify, o.Trouble), s.Server().Caps
	configured := settings(cfg.Queues)
	wanted := newWantedQueues(configured)
	claimed, pollers, dispatchers := lease.NewSet(), claim.NewPollers(wanted.want), dispatchers{}
	health, ended := control.NewHealthReport(), new(run.EndedRuns)

	tally := new(upkeep.Tally)
	if !cfg.NoHistory {
		o = counted{o, tally}
	}

	queueLimits := make(map[string][]store.Limit, len(cfg.Queues))
	for name, queue := range cfg.Queues {
		queueLimits[name] = queue.Limits
	}
	unused := upkeep.NewUnusedLimits(cfg.Handlers, queueLimits, health, log)
	if unused.Any() {
		o = watched{o, unused}
	}

	effects := effects{claimed, pollers, dispatchers}
	kinds := run.PoliciesOf(cfg.Handlers)
	overrides := control.NewOverrides(s, kinds, effects, health, log)
	changes := control.NewChangeReader(s, overrides, effects, health, log)
	perTask := control.NewTaskPolicies(s, policies, health, log)

	leases := lease.NewExtender(cfg.ID, cfg.Lease, claimed, s, changes, o, log)
	progress := run.NewProgressWriter(cfg.ID, s, log)
	opened := cfg.Opened
	if opened == nil {
		opened = func(ctx context.Context, queue string) {
			pollers.Notified(queue)
			if caps.Notify {
				_ = s.Notify(ctx, queue) // after an error, workers that listen find the tasks by polling
			}
		}
	}
	flows := upkeep.NewFlowKeeper(s, opened, log)
	settler := run.NewSettler(run.SettlerConfig{
		Table: s, SingleWriter: caps.SingleWriter,
		WorkerID: cfg.ID, LeaseLength: cfg.Lease, ShutdownTimeout: cfg.ShutdownTimeout,
		Leases: leases, Pollers: pollers, Ended: ended, Log: log, Observer: o, Flows: flows,
	})
	overtime, stuck := upkeep.NewOvertime(o, health, log), run.NewStuck(cfg.Stuck, stopNow, log)
	sweeper := claim.NewSweeper(s.NewLaneFinder(), pollers, s.Classify, log, o)
	limited := false
	for name, queue := range cfg.Queues {
		budget := run.NewBudget(queue.Concurrency, queue.MaxPrefetch)
		dispatchers[name] = run.NewDispatcher(run.DispatcherConfig{
			Env: &run.Env{
				Queue: name, MaxResult: cfg.MaxPayload, Encode: cfg.Encode, Decode: cfg.Decode, Overrides: overrides,
				Observer: o, Timeouts: overtime, Stuck: stuck, Reports: progress, Table: s, StepTable: s, Stop: stop,
			},
			WorkerID: cfg.ID, Handlers: cfg.Handlers, Leases: leases, Length: cfg.Lease, Budget: budget, Settle: settler.In, Changes: changes,
			Log: log, Observer: o, Stop: stop, Work: work,
		})
		limited = limited || claim.NewLimiter(queue.Limits, cfg.Handlers).Any
	}
	queues := &queues{
		settings: configured, wanted: wanted, interval: cfg.PollInterval, pollers: pollers, dispatchers: dispatchers,
		poller: claim.PollerConfig{
			WorkerID: cfg.ID, LeaseLength: cfg.Lease, Handlers: cfg.Handlers, PollInterval: cfg.PollInterval, Table: s, Sweeper: sweeper, Settler: settler,
			OneStatement: statements.ClaimsAtOnce(s.Server()), ParallelClaims: caps.LockRows, AscendingIDs: caps.AscendingIDs,
			Log: log, Observer: o, Expired: expired{tally, flows}, All: pollers,
		},
		policies: func(queue string) *control.Policies {
			return control.NewPolicies(queue, kinds, changes, perTask, overrides)
		},
		table: s, events: events{log}, found: map[string]*foundQueue{},
	}
	for name := range cfg.Queues {
		if !pattern.Is(name) {
			queues.add(name, name)
		}
	}
	cleaner := upkeep.NewCleaner(s, pollers.Queues, cfg.OthersRetention, cfg.Handlers, log)
	listener := news.NewListener(cfg.Listen, s.Channel(), pollers, log)
	roles := []role{
		perTask, policies, flows, changes, overtime, overrides, cleaner, upkeep.NewUniqueCleaner(s.DropKeys, log), upkeep.NewStepCleaner(s.DropOrphanedSteps, log),
		upkeep.NewOverdueWatch(overdue.In(s), configured.works, cfg.Handlers, changes, overrides, log),
		sweeper, news.NewProber(s, caps.AscendingIDs, cfg.PollInterval, changes, pollers, listener),
	}
	if unused.Any() {
		roles = append(roles, unused)
	}
	if limited {
		roles = append(roles, upkeep.NewPermitCleaner(s.DropPermits, log))
	}
	if cfg.Listen != nil {
		roles = append(roles, listener)
	}
	var historian *upkeep.Historian
	if !cfg.NoHistory {
		gauges := upkeep.NewGauges(s, overdue.In(s), cfg.Handlers, changes, perTask, overrides)
		historian = upkeep.NewHistorian(tally, dispatchers, gauges, s, log)
	}
	return &Worker{
		Config: cfg, stop: stop, cancelWork: cancel, stuck: stuck, events: events{log},
		queues: queues, pollers: pollers, dispatchers: dispatchers, settler: settler, claimed: claimed, ended: ended, leases: leases, progress: progress, flows: flows,
		changes: changes, overrides: overrides, perTask: perTask, cleaner: cleaner, roles: roles,
		historian: historian,
		announcer: upkeep.NewAnnouncer(cfg.ID, cfg.Info, dispatchers, claimed, ended, health, s, log),
	}
}

// kindsOf lists the handled kinds whose queue is queue.
func kindsOf(handlers map[string]*run.Handler, queue string) (kinds []string) {
	for _, kind := range slices.Sorted(maps.Keys(handlers)) {
		if handlers[kind].Queue == queue {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Refresh reads pauses, overrides and cancels. A worker does so before its first claim.
func (w *Worker) Refresh(ctx context.Context) error {
	if err := w.changes.Read(ctx); err != nil {
		return fmt.Errorf("read the pauses: %w", err)
	}
	w.overrides.Refresh(ctx)
	return nil
}

// Run works until the worker must stop. It returns when all its goroutines have ended. If only given-up
// handlers are left, Run returns an error about them.
func (w *Worker) Run() error {
	ctx := w.stop
	defer w.cancelWork(nil)
	w.events.started(w.Config)
	w.working.Store(true)
	defer func() {
		all := w.ended.All()
		w.events.stopped(w.Config, all.Done, all.Failed)
	}()
	for _, kind := range slices.Sorted(maps.Keys(w.Handlers)) {
		if queue := w.Handlers[kind].Queue; !w.queues.settings.works(queue) {
			w.events.kindWithoutQueue(kind, queue)
		}
	}
	// Leases are extended, progress is written, the worker is announced, and tasks are settled
	// until the last handler has returned.
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAfter()
	settling, stopSettling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSettling()

	var background, claiming, handling sync.WaitGroup
	background.Go(func() { w.leases.Work(after) })
	background.Go(func() { w.progress.Work(after) })
	background.Go(func() { w.announcer.Work(after) })
	if w.historian != nil {
		background.Go(func() { w.historian.Work(after) })
	}
	background.Go(func() { w.settler.Work(settling) })
	for _, r := range w.roles {
		background.Go(func() { r.Work(ctx) })
	}
	claiming.Go(func() { w.queues.Work(ctx) })
	for _, d := range w.dispatchers {
		claiming.Go(func() { d.Watch(ctx) })
	}

	<-ctx.Done()
	w.announcer.Stop()
	timeout, running := max(w.ShutdownTimeout, 0), 0
	for _, n := range w.dispatchers.Running() {
		running += n
	}
	w.events.stopping(running, timeout)
	end := time.Now().Add(timeout)
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		claiming.Wait()
		for _, d := range w.dispatchers {
			handling.Go(d.Finish)
		}
		handling.Wait()
	}()
	background.Go(func() {
		late := time.NewTimer(time.Until(end))
		defer late.Stop()
		select {
		case <-handled:
		case <-late.C:
			w.cancelWork(outcome.ErrStopping)
			w.reportRunning(handled)
		}
	})
	// Without a limit, the worker would wait for a database that does not answer until the
	// leases end.
	w.awaitHandlers(handled, end.Add(retry.LastSettles), stopSettling)
	giveUp := time.AfterFunc(max(time.Until(end), 0)+retry.LastSettles, stopSettling)
	defer giveUp.Stop()
	close(w.settler.In)
	<-w.settler.Done
	w.flows.Last(settling)
	stopAfter()
	background.Wait()
	return w.stuck.Err()
}

// reportEvery is how often a worker that waits for handlers reports them.
const reportEvery = time.Minute

// reportRunning reports the handlers that run, now and each minute, until handled is closed.
func (w *Worker) reportRunning(handled <-chan struct{}) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		if list := w.claimed.Sorted(); len(list) > 0 {
			w.events.stillRunning(list)
		}
		select {
		case <-handled:
			return
		case <-tick.C:
		}
	}
}

// awaitHandlers waits until handled is closed: claims have ended, and all handlers have returned and passed
// their runs to the settler. From end on it calls stopSettling if the settler takes no more runs.
func (w *Worker) awaitHandlers(handled <-chan struct{}, end time.Time, stopSettling func()) {
	late := time.NewTimer(time.Until(end))
	defer late.Stop()
	for {
		select {
		case <-handled:
			return
		case <-late.C:
			if w.settler.Full() {
				stopSettling()
			}
			late.Reset(time.Second)
		}
	}
}

// Wake makes the worker search for tasks that it does not know.
func (w *Worker) Wake() { w.pollers.SweepNow() }

// SweptAt returns when the last sweep of any queue ended, or the zero time.
func (w *Worker) SweptAt() time.Time { return w.pollers.SweptAt() }

// DelayOf returns the delay of a lane, and false if the worker's pollers do not know the delay.
func (w *Worker) DelayOf(queue string, at store.Lane) (time.Duration, bool) {
	p := w.pollers.Of(queue)
	if p == nil {
		return 0, false
	}
	return p.DelayOf(at)
}

// EndedRuns counts the runs that have ended since the start.
func (w *Worker) EndedRuns() store.Runs { return w.ended.All() }

// ReadChanges makes the worker read pauses, overrides and cancels soon. It does not wait for that.
func (w *Worker) ReadChanges() { w.changes.ReadSoon() }

// Enqueued notifies the pollers of tasks that this process has just stored, so that the tasks start before
// the next poll.
func (w *Worker) Enqueued(entries []store.Entry) {
	for _, e := range entries {
		wait := store.Duration(e.Delay)
		if e.At.Valid {
			wait = time.Until(store.Time(e.At.V)) // if this clock is wrong, the poller only wakes too early or too late
		}
		w.pollers.Hint(e.Queue, laneOf(e), wait)
	}
}

// laneOf returns the lane that a new task is in.
func laneOf(e store.Entry) store.Lane {
	return store.Lane{State: statements.StateOpen, Key: e.Key, Priority: e.Priority, Kind: e.Kind, Policy: e.Policy}
}
