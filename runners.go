package falldue

import (
	"context"
	"slices"
	"sync"
	"time"

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
	run      func(*taskRun)
	returned func()        // called after each run, when the next one may start
	queued   chan struct{} // signalled when tasks wait
	all      sync.WaitGroup

	mu       sync.Mutex
	waiting  []*taskRun
	running  int  // goroutines
	busy     int  // goroutines that run a task
	starting bool // a goroutine has not taken its first task yet
}

// add adds runs to be run. A task's last attempt never waits, since a worker that died
// meanwhile would use it up: add puts last attempts first, and returns those for which
// no handler is free.
func (r *runners) add(runs ...*taskRun) (refused []*taskRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var first []*taskRun
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
	signal(r.queued)
	return refused
}

// start starts a goroutine if a task waits and fewer than limit are running. The
// caller holds mu.
func (r *runners) start() {
	if len(r.waiting) > 0 && r.running < r.limit && !r.starting {
		r.running++
		r.starting = true
		r.all.Go(r.loop)
	}
}

// loop runs tasks until none waits.
func (r *runners) loop() {
	var current *taskRun
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
func (r *runners) next(last *taskRun) (next *taskRun) {
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
func (r *runners) ended(run *taskRun) {
	if run != nil {
		r.busy--
	}
}

// active returns how many tasks run.
func (r *runners) active() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy
}

// drain removes and returns the tasks that wait.
func (r *runners) drain() []*taskRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting
	r.waiting = nil
	return waiting
}

// remove removes the tasks that wait and for which match is true, and calls removed with
// them. It does so before a drain can return, so that whoever waits for all after that
// waits for what removed begins, too.
func (r *runners) remove(match func(*taskRun) bool, removed func([]*taskRun)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list, rest []*taskRun
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
func (r *runners) overdue() (list []*taskRun, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, rest := time.Now(), []*taskRun(nil)
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

// dispatcher runs the handlers of the tasks that a poller has claimed, and passes
// their outcomes to the settler.
type dispatcher struct {
	env      *runEnv
	workerID string
	handlers map[string]*handler
	runners  runners
	leases   *leases
	length   time.Duration // of a lease
	budget   *budget
	settle   chan<- *taskRun
	changes  *changeReader
	events   events
	observer *observer
}

// runRoom is for how many runs take makes room at a time. The last one of them keeps the
// room of all.
const runRoom = 8

// take runs the handlers of claims that were sent at start.
func (d *dispatcher) take(claims []*store.Claim, rules []*rule, start time.Time) {
	runs := make([]*taskRun, 0, len(claims))
	for some := range slices.Chunk(claims, runRoom) {
		made := make([]taskRun, len(some))
		for i, c := range some {
			d.begin(&made[i], c, rules[c.Place-1], start)
			runs = append(runs, &made[i])
		}
	}
	d.leases.hold(runs...)
	if d.changes.pauses.Load() != nil { // a claim may have been under way when one began
		var paused []*taskRun
		runs = slices.DeleteFunc(runs, func(r *taskRun) bool {
			if !d.changes.paused(d.env.queue, r.claim.From) {
				return false
			}
			paused = append(paused, r)
			return true
		})
		d.giveBack(paused)
	}
	refused := d.runners.add(runs...)
	for _, r := range refused { // tasks may have limits of their own, which a claim does not know before
		r.handler.pace.pause()
	}
	d.giveBack(refused)
	d.givePausedBack() // a pause may have begun meanwhile
}

// begin makes r the run of a claim that was sent at start.
func (d *dispatcher) begin(r *taskRun, c *store.Claim, rule *rule, start time.Time) {
	r.runEnv, r.handler = d.env, d.handlers[c.From.Kind]
	r.execution = execution{claim: c, rule: rule, workerID: d.workerID, claimed: start}
	r.lease.until = start.Add(d.length)
}

// givePausedBack gives back the tasks that wait for a handler and are paused. Those who
// read changes call it at any time, also while the worker stops.
func (d *dispatcher) givePausedBack() {
	if d.changes.pauses.Load() != nil {
		d.runners.remove(func(r *taskRun) bool { return d.changes.paused(d.env.queue, r.claim.From) }, d.giveBack)
	}
}

// start makes take run handlers, whose context is work. Once stop has ended, tasks are
// given back instead.
func (d *dispatcher) start(stop, work context.Context) {
	d.runners.limit, d.runners.returned, d.runners.queued = d.budget.limit, d.budget.returned, make(chan struct{}, 1)
	d.runners.run = func(r *taskRun) { d.handle(stop, work, r) }
}

// watch gives back the tasks that have waited for maxWait, until ctx ends.
func (d *dispatcher) watch(ctx context.Context) {
	for ctx.Err() == nil {
		list, next := d.runners.overdue()
		d.giveBack(list)
		if next > 0 {
			await(ctx, nil, next)
		} else {
			await(ctx, d.runners.queued, time.Hour)
		}
	}
}

// giveBack gives back tasks whose handlers have not started. It does not wait for the
// settler, so that claims end as soon as the worker stops.
func (d *dispatcher) giveBack(runs []*taskRun) {
	if len(runs) == 0 {
		return
	}
	d.runners.all.Go(func() {
		for _, r := range runs {
			r.end = r.release()
			d.settle <- r
			d.budget.waitedInVain()
		}
	})
}

// finish gives back the tasks that wait for a handler, and waits for the handlers that
// run. It is called after stop has ended.
func (d *dispatcher) finish() {
	d.giveBack(d.runners.drain())
	d.runners.all.Wait()
}

// handle runs the handler of a claimed task. Once stop has ended, it gives the task
// back instead.
func (d *dispatcher) handle(stop, work context.Context, r *taskRun) {
	var e store.Settlement
	ours, returned := true, false
	defer func() {
		if !returned {
			e, ours = r.finish(errGoexit, time.Since(r.claimed))
		}
		if ours {
			r.end = e
			d.settle <- r
		} else {
			d.leases.drop(r)
			d.events.leaseLost(r.claim, r.lease.lostBy(), "while it ran")
			d.leases.ended(work, r)
			d.observer.ended(r, r.lease.lostBy(), 0)
		}
	}()
	if stop.Err() != nil {
		e = r.release()
	} else {
		e, ours = r.execute(work)
	}
	returned = true
}
