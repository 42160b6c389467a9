package run

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// maxWait is how long a claimed task may wait for a handler. Then it is given back, so
// that an idle worker can run it.
const maxWait = time.Second

// runners run the claimed tasks of a queue in the order in which they were added, up
// to limit at once. A goroutine runs one task after the other and ends when none
// waits. When it takes a task and others wait, it starts another goroutine, one at a
// time. Handlers that take long therefore all run in parallel, and handlers that
// return at once are run by a few goroutines whose stacks have already grown.
type runners struct {
	limit    int
	run      func(*Run)
	returned func()        // called after each run, when the next one may start
	queued   chan struct{} // signalled when tasks wait
	All      sync.WaitGroup

	mu       sync.Mutex
	waiting  []*Run
	running  int  // goroutines
	busy     int  // goroutines that run a task
	starting bool // a goroutine has not taken its first task yet
}

func newRunners(b *Budget, run func(*Run)) *runners {
	return &runners{limit: b.Limit, run: run, returned: b.returned, queued: make(chan struct{}, 1)}
}

// add adds runs to be run. A task's last attempt never waits, since a worker that died
// meanwhile would use it up: add puts last attempts first, and returns those for which
// no handler is free.
func (r *runners) add(runs ...*Run) (refused []*Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var first []*Run
	free := r.limit - r.busy - len(r.waiting)
	for _, one := range runs {
		one.queued = now
		switch {
		case !one.isLast():
			r.waiting = append(r.waiting, one)
		case len(first) < free:
			first = append(first, one)
		default:
			refused = append(refused, one)
		}
	}
	r.waiting = slices.Insert(r.waiting, 0, first...)
	r.start()
	retry.Signal(r.queued)
	return refused
}

// start starts a goroutine if a task waits and fewer than limit are running. The
// caller holds mu.
func (r *runners) start() {
	if len(r.waiting) > 0 && r.running < r.limit && !r.starting {
		r.running++
		r.starting = true
		r.All.Go(r.loop)
	}
}

// loop runs tasks until none waits.
func (r *runners) loop() {
	var current *Run
	defer func() { // also when a handler calls runtime.Goexit
		r.mu.Lock()
		r.running--
		r.ended(current)
		r.start()
		r.mu.Unlock()
		if current != nil {
			r.returned()
		}
	}()
	r.mu.Lock()
	r.starting = false
	r.mu.Unlock()
	for {
		last := current
		current = r.next(last)
		if last != nil {
			r.returned()
		}
		if current == nil {
			return
		}
		r.run(current)
	}
}

// next records that last has ended, if it is not nil, and removes and returns the task
// that has waited longest, or nil if none waits.
func (r *runners) next(last *Run) (next *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended(last)
	if len(r.waiting) == 0 {
		return nil
	}
	next, r.waiting[0] = r.waiting[0], nil
	r.waiting = r.waiting[1:]
	r.busy++
	r.start()
	return next
}

// ended records that a task has ended, if it is not nil. The caller holds mu.
func (r *runners) ended(run *Run) {
	if run != nil {
		r.busy--
	}
}

// Active returns how many tasks run.
func (r *runners) Active() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy
}

// drain removes and returns the tasks that wait.
func (r *runners) drain() []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting
	r.waiting = nil
	return waiting
}

// remove removes the tasks that wait and for which match is true, and calls removed with
// them. It does so before a drain can return, so that whoever waits for all after that
// waits for what removed begins, too.
func (r *runners) remove(match func(*Run) bool, removed func([]*Run)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list, rest []*Run
	for _, one := range r.waiting {
		if match(one) {
			list = append(list, one)
		} else {
			rest = append(rest, one)
		}
	}
	r.waiting = rest
	removed(list)
}

// overdue removes and returns the tasks that have waited for maxWait. If others wait, it
// returns in how long the first of them will have.
func (r *runners) overdue() (list []*Run, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, rest := time.Now(), []*Run(nil)
	for _, one := range r.waiting {
		left := maxWait - now.Sub(one.queued)
		if left <= 0 {
			list = append(list, one)
			continue
		}
		if len(rest) == 0 || left < next {
			next = left
		}
		rest = append(rest, one)
	}
	r.waiting = rest
	return list, next
}

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
	return &Dispatcher{cfg, newRunners(cfg.Budget, cfg.Handle)}
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
	d.Leases.held.Add(runs...)
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
	r.Execution = Execution{Claim: c, Policy: rule, WorkerID: d.WorkerID, Claimed: start}
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
			r.end = r.release()
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
			e, ours = r.Finish(errGoexit, time.Since(r.Claimed))
		}
		if ours {
			r.end = e
			c.Settle <- r
		} else {
			c.Leases.held.drop(r)
			c.events().leaseLost(r.Claim, r.lease.lostBy(), "while it ran")
			c.Leases.ended(c.Work, r)
			c.Observer.Ended(r, r.lease.lostBy(), 0)
		}
	}()
	if c.Stop.Err() != nil {
		e = r.release()
	} else {
		e, ours = r.execute(c.Work)
	}
	returned = true
}
