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

// worker is one Run: a poller and a desk for each queue, and the settler and the
// roles that they share. Data flows one way: poller → desk → handler → settler.
type worker struct {
	id              string
	shutdownTimeout time.Duration
	pollers         signals
	desks           map[string]*desk
	settler         *settler
	leases          *leases
	roles           []role
}

// role is a background task of a worker that works until its context ends. The
// worker waits for it.
type role interface{ work(ctx context.Context) }

func newWorker(cfg Config, s *store.Store, known *policies, handlers map[string]*handler) *worker {
	w := &worker{
		id: cfg.workerID(), shutdownTimeout: cfg.ShutdownTimeout, pollers: signals{}, desks: map[string]*desk{},
	}
	events, caps := events{cfg.Logger}, s.Server().Caps
	w.leases = &leases{workerID: w.id, length: cfg.Lease, events: events, extendRows: s.Extend, held: map[*run]struct{}{}}
	w.settler = newSettler(settlerConfig{
		store: s, workerID: w.id, leaseLength: cfg.Lease, shutdownTimeout: cfg.ShutdownTimeout,
		leases: w.leases, signals: w.pollers, events: events,
	})
	for name, queue := range cfg.Queues {
		p := newPoller(pollerConfig{
			queue: name, workerID: w.id, leaseLength: cfg.Lease, handlers: handlers,
			gates: gates{handledKinds(handlers), readablePolicies{known, name, events}},
			slot:  s.SlotName(name, kindsOf(handlers, name)),

			claimRows: s.Claim, behind: w.settler.behind, guesses: statements.ClaimsAtOnce(s.Server()), sideBySide: caps.LockRows, events: events,
		}, queue.Concurrency, cfg.PollInterval, s.NewSweeper(name).Sweep)
		d := &desk{
			env:      &runEnv{queue: name, maxPayload: cfg.MaxPayload, settleTx: s.SettleTx},
			workerID: w.id, handlers: handlers, leases: w.leases, length: cfg.Lease, meter: p.meter, freed: p.freed, settle: w.settler.in, events: events,
		}
		p.hand = d.take
		w.pollers[name], w.desks[name] = p, d
	}
	w.roles = append(w.roles, &cleaner{
		queues: slices.Collect(maps.Keys(cfg.Queues)), doneRetention: cfg.DoneRetention, deadRetention: cfg.DeadRetention,
		clean: s.Clean, events: events,
	})
	if cfg.Listen != nil {
		w.roles = append(w.roles, &listener{listen: cfg.Listen, channel: s.Channel(), wake: w.pollers.look, events: events})
	}
	return w
}

// kindsOf lists the kinds whose tasks wait in a queue unless they say otherwise.
func kindsOf(handlers map[string]*handler, queue string) (kinds []string) {
	for _, kind := range slices.Sorted(maps.Keys(handlers)) {
		if handlers[kind].kind.Queue == queue {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// run works until ctx ends, and returns when nothing of it is left.
func (w *worker) run(ctx context.Context) {
	// To stop claiming is not to stop working: handlers get a context of their
	// own, which ends when the shutdown timeout is over.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	// Leases and settles go on until the last handler has returned.
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAfter()
	settling, stopSettling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSettling()

	var background, claiming, handling sync.WaitGroup
	background.Go(func() { w.leases.work(after) })
	background.Go(func() { w.settler.work(settling) })
	for _, r := range w.roles {
		background.Go(func() { r.work(ctx) })
	}
	for name, p := range w.pollers {
		d := w.desks[name]
		d.runners.limit, d.runners.run = p.meter.limit, func(r *run) { d.handle(ctx, work, r) }
		claiming.Go(func() { p.loop(ctx) })
		claiming.Go(func() { p.assist(ctx) })
	}

	<-ctx.Done()
	stopped := time.Now()
	claiming.Wait()
	for _, d := range w.desks {
		handling.Go(func() {
			for _, r := range d.runners.drain() {
				d.handle(ctx, work, r) // which gives it back
			}
			d.runners.all.Wait()
		})
	}
	handled := make(chan struct{})
	go func() { handling.Wait(); close(handled) }()
	timeout := time.NewTimer(w.shutdownTimeout)
	defer timeout.Stop()
	select {
	case <-handled:
	case <-timeout.C:
		cancel(ErrStopping)
		<-handled
	}
	// A database that does not answer must not hold up the end for as long as
	// leases last.
	giveUp := time.AfterFunc(max(time.Until(stopped.Add(w.shutdownTimeout)), 0)+lastSettles, stopSettling)
	defer giveUp.Stop()
	close(w.settler.in)
	<-w.settler.done
	stopAfter()
	background.Wait()
}

// enqueued tells the pollers of tasks that this process has just stored, so that
// they need not wait for the next poll.
func (w *worker) enqueued(entries []store.Entry) {
	for _, e := range entries {
		wait := store.Duration(e.Delay)
		if e.At.Valid {
			wait = time.Until(store.Time(e.At.V)) // by a clock that may be wrong: only the poller's sleep depends on it
		}
		w.pollers.hint(e.Queue, laneOf(e), wait)
	}
}

// laneOf returns the lane that a new task is in.
func laneOf(e store.Entry) store.Lane {
	return store.Lane{State: statements.StateOpen, Priority: e.Priority, Kind: e.Kind, Policy: e.Policy}
}
