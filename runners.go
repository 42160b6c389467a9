package falldue

import (
	"context"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// runners run the claimed tasks of a queue in the order in which they were added, up
// to limit at once. A goroutine runs one task after the other and ends when none
// waits. When it takes a task and others wait, it starts another goroutine, one at a
// time. Handlers that take long therefore all run in parallel, and handlers that
// return at once are run by a few goroutines whose stacks have already grown.
type runners struct {
	limit int
	run   func(*taskRun)
	all   sync.WaitGroup

	mu       sync.Mutex
	waiting  []*taskRun
	running  int  // goroutines
	starting bool // a goroutine has not taken its first task yet
}

// add adds runs to be run.
func (r *runners) add(runs ...*taskRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, runs...)
	r.start()
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
	defer func() { // also when a handler calls runtime.Goexit
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running--
		r.start()
	}()
	r.mu.Lock()
	r.starting = false
	r.mu.Unlock()
	for next := r.take(); next != nil; next = r.take() {
		r.run(next)
	}
}

// take removes and returns the task that has waited longest, or nil if none waits.
func (r *runners) take() (next *taskRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil
	}
	next, r.waiting[0] = r.waiting[0], nil
	r.waiting = r.waiting[1:]
	r.start()
	return next
}

// drain removes and returns the tasks that wait.
func (r *runners) drain() []*taskRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting
	r.waiting = nil
	return waiting
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
	events   events
}

// take runs the handlers of claims that were sent at start.
func (d *dispatcher) take(claims []*store.Claim, rules []*rule, start time.Time) {
	runs := make([]*taskRun, len(claims))
	for i, c := range claims {
		runs[i] = &taskRun{runEnv: d.env, execution: execution{c, rules[c.Place-1], d.workerID, start}, handler: d.handlers[c.From.Kind]}
		runs[i].lease.until = start.Add(d.length)
	}
	d.leases.hold(runs...)
	d.runners.add(runs...)
}

// start makes take run handlers, whose context is work. Once stop has ended, tasks are
// given back instead.
func (d *dispatcher) start(stop, work context.Context) {
	d.runners.limit, d.runners.run = d.budget.limit, func(r *taskRun) { d.handle(stop, work, r) }
}

// finish gives back the tasks that wait for a handler, and waits for the handlers that
// run. It is called after stop has ended.
func (d *dispatcher) finish() {
	for _, r := range d.runners.drain() {
		d.runners.run(r)
	}
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
			d.events.leaseLost(r.claim, "while the task ran")
		}
		d.budget.returned()
	}()
	if stop.Err() != nil {
		e = r.release()
	} else {
		e, ours = r.execute(work)
	}
	returned = true
}
