package run

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// Dispatcher runs the handlers of the tasks that a poller has claimed, and passes
// their outcomes to the settler.
type Dispatcher struct {
	DispatcherConfig
	Runners *runners
}

// DispatcherConfig has the settings of a dispatcher and what it calls.
type DispatcherConfig struct {
	Env      *Env
	WorkerID string
	Handlers map[string]*Handler
	Leases   *Leases
	Length   time.Duration // of a lease
	Budget   *Budget
	Settle   chan<- *Run
	Changes  *control.ChangeReader
	Log      *slog.Logger
	Observer Observer
	// Work is the context of handlers. Once stop has ended, tasks are released instead of run.
	Stop, Work context.Context
}

func (c *DispatcherConfig) events() events { return events{c.Log} }

// NewDispatcher returns a dispatcher of a queue.
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	return &Dispatcher{cfg, newRunners(cfg.Budget, &cfg)}
}

// runRoom is for how many runs take makes room at a time. The last one of them keeps the
// room of all.
const runRoom = 8

// Take runs the handlers of claims that were sent at start.
func (d *Dispatcher) Take(claims []*store.Claim, rules []*control.CompiledPolicy, start time.Time) {
	runs := make([]*Run, 0, len(claims))
	for some := range slices.Chunk(claims, runRoom) {
		made := make([]Run, len(some))
		for i, c := range some {
			d.Begin(&made[i], c, rules[c.Place-1], start)
			runs = append(runs, &made[i])
		}
	}
	d.Leases.claimed.Add(runs...)
	if d.Changes.AnyPause() { // a claim may have been under way when one began
		var paused []*Run
		runs = slices.DeleteFunc(runs, func(r *Run) bool {
			if !d.Changes.Paused(d.Env.Queue, r.Claim.From) {
				return false
			}
			paused = append(paused, r)
			return true
		})
		d.giveBack(paused)
	}
	refused := d.Runners.add(runs...)
	for _, r := range refused { // tasks may have limits of their own, which a claim does not know before
		r.handler.Pace.pause()
	}
	d.giveBack(refused)
	d.GivePausedBack() // a pause may have begun meanwhile
}

// Begin makes r the run of a claim that was sent at start.
func (d *Dispatcher) Begin(r *Run, c *store.Claim, rule *control.CompiledPolicy, start time.Time) {
	r.Env, r.handler = d.Env, d.Handlers[c.From.Kind]
	r.ClaimResult = outcome.ClaimResult{Claim: c, Policy: rule, WorkerID: d.WorkerID, Claimed: start}
	r.lease.until = start.Add(d.Length)
}

// GivePausedBack gives back the tasks that wait for a handler and are paused. Those who
// read changes call it at any time, also while the worker stops.
func (d *Dispatcher) GivePausedBack() {
	if d.Changes.AnyPause() {
		d.Runners.remove(func(r *Run) bool { return d.Changes.Paused(d.Env.Queue, r.Claim.From) }, d.giveBack)
	}
}

// Watch gives back the tasks that have waited for maxWait, until ctx ends.
func (d *Dispatcher) Watch(ctx context.Context) {
	for ctx.Err() == nil {
		list, next := d.Runners.overdue()
		d.giveBack(list)
		if next > 0 {
			retry.Await(ctx, nil, next)
		} else {
			retry.Await(ctx, d.Runners.queued, time.Hour)
		}
	}
}

// giveBack gives back tasks whose handlers have not started. It does not wait for the
// settler, so that claims end as soon as the worker stops.
func (d *Dispatcher) giveBack(runs []*Run) {
	if len(runs) == 0 {
		return
	}
	d.Runners.All.Go(func() {
		for _, r := range runs {
			r.end = r.Release()
			d.Settle <- r
			d.Budget.waitedInVain()
		}
	})
}

// Finish gives back the tasks that wait for a handler, and waits for the handlers that
// run. It is called after stop has ended.
func (d *Dispatcher) Finish() {
	d.giveBack(d.Runners.drain())
	d.Runners.All.Wait()
}

// Handle runs the handler of a claimed task. Once stop has ended, it gives the task
// back instead.
func (c *DispatcherConfig) Handle(r *Run) {
	var e store.Settlement
	ours, returned := true, false
	defer func() {
		if !returned {
			e, ours = r.Finish(outcome.Goexit, time.Since(r.Claimed))
		}
		if ours {
			r.end = e
			c.Settle <- r
		} else {
			c.Leases.claimed.drop(r)
			c.events().leaseLost(r.Claim, r.lease.lostBy(), "while it ran")
			c.Leases.ended(c.Work, r)
			c.Observer.Ended(r, r.lease.lostBy(), 0)
		}
	}()
	if c.Stop.Err() != nil {
		e = r.Release()
	} else {
		e, ours = r.execute(c.Work)
	}
	returned = true
}
