package run

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lease"
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

// DispatcherConfig has the settings of a dispatcher, and the parts of the worker that it uses.
type DispatcherConfig struct {
	Env      *Env
	WorkerID string
	Handlers map[string]*Handler
	Leases   *lease.Extender
	Length   time.Duration // of a lease
	Budget   *Budget
	Settle   chan<- *Run
	Changes  *control.ChangeReader
	Log      *slog.Logger
	Observer Observer
	// Work is the context of handlers. Once Stop has ended, tasks are released instead of run.
	Stop, Work context.Context
}

func (c *DispatcherConfig) events() events { return events{c.Log} }

// NewDispatcher returns a dispatcher of a queue.
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	return &Dispatcher{cfg, newRunners(cfg.Budget, &cfg)}
}

// For returns the dispatcher of another queue, which shares the handlers' goroutines with d.
func (d *Dispatcher) For(queue string) *Dispatcher {
	other, env := *d, *d.Env
	env.Queue, other.Env = queue, &env
	return &other
}

// runRoom is how many runs Take allocates together. Their memory stays in use until the last of them
// has ended.
const runRoom = 8

// Take runs the handlers of claims that were sent at start. policies has the policies of the claims' sources.
func (d *Dispatcher) Take(claims []*store.Claim, policies []*control.CompiledPolicy, start time.Time) {
	runs := make([]*Run, 0, len(claims))
	for some := range slices.Chunk(claims, runRoom) {
		made := make([]Run, len(some))
		for i, c := range some {
			d.Begin(&made[i], c, policies[c.Place-1], start)
			runs = append(runs, &made[i])
		}
	}
	d.Leases.Add(leasesOf(runs)...)
	if d.Changes.AnyPause() { // a pause may have begun during the claim
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
	for _, r := range refused { // they were claimed ahead, since the poller does not know the limits of single tasks
		r.handler.Pace.pause()
	}
	d.giveBack(refused)
	d.GivePausedBack() // a pause may have begun in the meantime
}

// Begin makes r the run of a claim that was sent at start.
func (d *Dispatcher) Begin(r *Run, c *store.Claim, policy *control.CompiledPolicy, start time.Time) {
	r.Env, r.handler = d.Env, d.Handlers[c.From.Kind]
	r.ClaimResult = outcome.ClaimResult{Claim: c, Policy: policy, WorkerID: d.WorkerID, Answered: time.Now()}
	r.Lease = lease.New(c, d.Env.Queue, start.Add(d.Length))
}

// GivePausedBack releases paused tasks that wait for a handler. The reader of changes may call it at any
// time, even while the worker stops.
func (d *Dispatcher) GivePausedBack() {
	if d.Changes.AnyPause() {
		d.Runners.remove(func(r *Run) bool { return d.Changes.Paused(r.Queue, r.Claim.From) }, d.giveBack)
	}
}

// Watch releases tasks that have waited for maxWait, until ctx ends.
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

// giveBack releases tasks whose handlers have not started. It does not wait for the settler, so that
// claims end as soon as the worker stops.
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

// Finish releases the tasks that wait for a handler, and waits for the running handlers. It is called
// after Stop has ended.
func (d *Dispatcher) Finish() {
	d.giveBack(d.Runners.drain())
	d.Runners.All.Wait()
}

// Handle runs the handler of a claimed task. Once Stop has ended, it releases the task instead.
func (c *DispatcherConfig) Handle(r *Run) { c.HandleOne(r) }

// HandleOne is Handle, and returns the run that the settler gets: another one if the handler was given up.
func (c *DispatcherConfig) HandleOne(r *Run) *Run {
	var e store.Settlement
	ours, returned := true, false
	defer func() {
		if !returned {
			e, ours = r.Finish(outcome.Goexit, time.Since(r.Answered))
		}
		if ours {
			r.end = e
			c.Settle <- r
		} else {
			c.Leases.Drop(&r.Lease)
			c.events().leaseLost(r.Claim, r.Lease.LostBy(), "while it ran")
			c.Leases.Ended(c.Work, &r.Lease)
			c.Observer.Ended(r, r.Lease.LostBy(), 0)
		}
	}()
	if c.Stop.Err() != nil {
		e = r.Release()
	} else {
		r, e, ours = r.execute(c.Work, c.Leases.Set)
	}
	returned = true
	return r
}
