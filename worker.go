package falldue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// worker is what Run runs: a poller and a dispatcher for each queue, and the
// settler, the leases and the roles that all queues share. Data flows one way:
// poller → dispatcher → handler → settler.
type worker struct {
	id              string
	shutdownTimeout time.Duration
	pollers         signals
	dispatchers     map[string]*dispatcher
	settler         *settler
	leases          *leases
	progress        *progressWriter
	flows           *flowKeeper
	changes         *changeReader
	cleaner         *cleaner
	announcer       *announcer
	overrides       *overrides
	roles           []role
	events          events
}

// A role is a background loop of a worker.
type role interface {
	// work returns soon after ctx has ended. The worker waits for it.
	work(ctx context.Context)
}

func newWorker(cfg Config, s *store.Store, keeper *policyKeeper, handlers map[string]*handler, observer *observer) *worker {
	w := &worker{
		id: cfg.workerID(), shutdownTimeout: cfg.ShutdownTimeout, pollers: signals{}, dispatchers: map[string]*dispatcher{},
		events: events{cfg.Logger},
	}
	events, caps := w.events, s.Server().Caps
	w.leases = newLeases(w.id, cfg.Lease, s, events)
	w.leases.observer = observer
	w.announcer = newAnnouncer(w.id, infoOf(cfg, handlers), w.running, s, events)
	troubles := w.announcer.troubles
	w.flows = newFlowKeeper(s, func(ctx context.Context, queue string) {
		w.pollers.noticed(queue)
		if caps.Notify {
			_ = s.Notify(ctx, queue) // those who listen only poll later without it
		}
	}, events)
	w.settler = newSettler(settlerConfig{
		settle: s.Settle, settleUnlocked: s.SettleUnlocked, classify: s.Server().Classify, singleWriter: caps.SingleWriter,
		workerID: w.id, leaseLength: cfg.Lease, shutdownTimeout: cfg.ShutdownTimeout,
		leases: w.leases, signals: w.pollers, ended: &w.announcer.ended, events: events, observer: observer, flows: w.flows,
	})
	w.progress = newProgressWriter(w.id, s.WriteProgress, events)
	w.changes = newChangeReader(s, events)
	w.changes.troubles = troubles
	w.changes.cancel, w.changes.resumed = w.leases.cancelled, w.pollers.sweepNow
	w.changes.pausedNow = func() {
		for _, d := range w.dispatchers {
			d.givePausedBack()
		}
	}
	w.leases.readChanges = w.changes.read
	w.overrides = newOverrides(s.CheckDelays, rulesOf(handlers), events)
	w.overrides.troubles = troubles
	w.changes.overridden, w.overrides.changed = w.overrides.ask, w.pollers.policiesChanged
	rules := newOwnRules(s.Policies, s.CheckDelays, keeper.stored, events)
	rules.troubles = troubles
	for name, queue := range cfg.Queues {
		budget := newBudget(queue.Concurrency, queue.MaxPrefetch)
		d := &dispatcher{
			env:      &runEnv{queue: name, maxPayload: cfg.MaxPayload, encode: func(kind string, id int64, data []byte) (string, error) { return encode(cfg.Codec, resultOf(kind, id), data) }, ruleNow: w.overrides.current, begins: observer.started, reported: w.progress.reported, settleTx: s.SettleTx},
			workerID: w.id, handlers: handlers, leases: w.leases, length: cfg.Lease, budget: budget, settle: w.settler.in, changes: w.changes, events: events, observer: observer,
		}
		finder := s.NewLaneFinder(name)
		p := newPoller(pollerConfig{
			queue: name, workerID: w.id, leaseLength: cfg.Lease, handlers: handlers,
			gates:  gates{unpaused{w.changes, name}, handledKinds(handlers), readablePolicies{rules, name}, overridden{w.overrides, name}},
			budget: budget, limiter: newLimiter(limitsOf("queue "+name, queue.Limits), handlers), slot: s.SlotName(name, kindsOf(handlers, name)),

			claimRows: s.Claim, claimUnderLimits: s.ClaimLimited, candidates: s.Candidates, claimKeys: s.ClaimKeys, classify: s.Server().Classify, dispatch: d.take, behind: w.settler.behind,
			policyVersion: w.overrides.version.Load,
			claimsAtOnce:  statements.ClaimsAtOnce(s.Server()), parallelClaims: caps.LockRows, events: events, observer: observer,
		}, &sweeper{every: cfg.PollInterval, heads: observer.sweeping(name, finder.Find), look: finder.Look})
		if !caps.AscendingIDs { // turns stand in for probes
			p.sweeper.share = probeShare
		}
		w.pollers[name], w.dispatchers[name] = p, d
	}
	w.cleaner = &cleaner{
		queues: slices.Collect(maps.Keys(cfg.Queues)), retentions: retentions{cfg.retentionOfOthers(), handlers}, foreign: foreignKinds{announced: s.AnnouncedKinds},
		lanes: s.FinishedLanes, clean: s.Clean, dropOrphans: s.DropOrphanedProgress, dropCancels: s.DropCancels, dropChanges: s.DropOldChanges, dropWorkers: s.DropLostWorkers, classify: s.Server().Classify, events: events,
	}
	w.roles = append(w.roles, rules, keeper, w.flows, w.changes, w.overrides, &pageCleaner[string]{s.DropKeys, keepUniques, events.uniquesFailed}, w.cleaner, &lookout{
		overdueFinder: newOverdueFinder(s, handlers, w.changes.paused, w.overrides), events: events,
		handled: func(queue, kind string) bool { return w.pollers[queue] != nil && handlers[kind] != nil },
	})
	for _, p := range w.pollers {
		if p.limiter.any {
			w.roles = append(w.roles, &pageCleaner[int64]{s.DropPermits, keepPermits, events.permitsFailed})
			break
		}
	}
	listener := &listener{listen: cfg.Listen, channel: s.Channel(), wake: w.pollers.noticed, events: events}
	if cfg.Listen != nil {
		w.roles = append(w.roles, listener)
	}
	w.roles = append(w.roles, &prober{
		byID: caps.AscendingIDs, pollInterval: cfg.PollInterval, news: s.News, newTasks: s.NewTasks, changes: w.changes, pollers: w.pollers,
		wanted: func() bool { return w.pollers.wait() && !s.Busy() }, listens: listener.active.Load,
	})
	return w
}

// kindsOf lists the handled kinds whose queue is queue.
func kindsOf(handlers map[string]*handler, queue string) (kinds []string) {
	for _, kind := range slices.Sorted(maps.Keys(handlers)) {
		if handlers[kind].queue == queue {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// run works until ctx ends. It returns when all its goroutines have ended.
func (w *worker) run(ctx context.Context) {
	// Handlers go on when claims stop. Their context ends when the shutdown timeout
	// is over.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	// Leases are extended, progress is written, the worker is announced, and tasks are settled
	// until the last handler has returned.
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAfter()
	settling, stopSettling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSettling()

	var background, claiming, handling sync.WaitGroup
	background.Go(func() { w.leases.work(after) })
	background.Go(func() { w.progress.work(after) })
	background.Go(func() { w.announcer.work(after) })
	background.Go(func() { w.settler.work(settling) })
	for _, r := range w.roles {
		background.Go(func() { r.work(ctx) })
	}
	for name, p := range w.pollers {
		d := w.dispatchers[name]
		d.start(ctx, work)
		claiming.Go(func() { p.loop(ctx) })
		claiming.Go(func() { p.assist(ctx) })
		claiming.Go(func() { d.watch(ctx) })
	}

	<-ctx.Done()
	w.announcer.stop()
	timeout, running := max(w.shutdownTimeout, 0), 0
	for _, n := range w.running() {
		running += n
	}
	w.events.stopping(running, timeout)
	end := time.Now().Add(timeout)
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		claiming.Wait()
		for _, d := range w.dispatchers {
			handling.Go(d.finish)
		}
		handling.Wait()
	}()
	background.Go(func() {
		late := time.NewTimer(time.Until(end))
		defer late.Stop()
		select {
		case <-handled:
		case <-late.C:
			cancel(ErrStopping)
			w.leases.report(handled)
		}
	})
	// Without a limit, Run would wait for a database that does not answer until the
	// leases end.
	w.awaitHandlers(handled, end.Add(lastSettles), stopSettling)
	giveUp := time.AfterFunc(max(time.Until(end), 0)+lastSettles, stopSettling)
	defer giveUp.Stop()
	close(w.settler.in)
	<-w.settler.done
	w.flows.last(settling)
	stopAfter()
	background.Wait()
}

// running returns how many handlers of each queue run.
func (w *worker) running() map[string]int {
	queues := make(map[string]int, len(w.dispatchers))
	for name, d := range w.dispatchers {
		queues[name] = d.runners.active()
	}
	return queues
}

// awaitHandlers waits until handled is closed: claims have ended, and all handlers have
// returned and passed their runs to the settler. From end on it calls stopSettling if
// the settler takes no more of them.
func (w *worker) awaitHandlers(handled <-chan struct{}, end time.Time, stopSettling func()) {
	late := time.NewTimer(time.Until(end))
	defer late.Stop()
	for {
		select {
		case <-handled:
			return
		case <-late.C:
			if w.settler.full() {
				stopSettling()
			}
			late.Reset(time.Second)
		}
	}
}

// enqueued notifies the pollers of tasks that this process has just stored, so that
// they start before the next poll.
func (w *worker) enqueued(entries []store.Entry) {
	for _, e := range entries {
		wait := store.Duration(e.Delay)
		if e.At.Valid {
			wait = time.Until(store.Time(e.At.V)) // this clock may be wrong, but only the poller's sleep depends on it
		}
		w.pollers.hint(e.Queue, laneOf(e), wait)
	}
}

// laneOf returns the lane that a new task is in.
func laneOf(e store.Entry) store.Lane {
	return store.Lane{State: statements.StateOpen, Key: e.Key, Priority: e.Priority, Kind: e.Kind, Policy: e.Policy}
}
