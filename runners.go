package falldue

import (
	"context"
	"sync"
	"time"
)

// runners run the claimed tasks of a queue, in the order in which they came, up
// to limit at once. A goroutine goes from task to task and ends when none waits.
// When it takes one and others wait it starts the next goroutine, one at a time:
// handlers that take long run all side by side, and those that return at once
// are run by a few goroutines, whose stacks have grown, instead of by limit cold
// ones in turn.
type runners struct {
	limit int
	run   func(*run)
	all   sync.WaitGroup

	mu       sync.Mutex
	waiting  []*run
	running  int  // goroutines
	starting bool // one of them has not taken its first task
}

// add has runs run as soon as there is room.
func (r *runners) add(runs ...*run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, runs...)
	r.start()
}

// start starts a goroutine, if there is work and room for it. The caller holds
// mu.
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

// take returns the task that waited longest, nil where none does.
func (r *runners) take() (next *run) {
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

// leave returns the tasks that wait, and does not run them.
func (r *runners) leave() []*run {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting
	r.waiting = nil
	return waiting
}

// handle runs the handler of a claimed task; once stop has ended it gives the
// task back instead.
func (p *poller) handle(stop, work context.Context, r *run) {
	var e settlement
	ours, returned := true, false
	defer func() {
		if !returned {
			e, ours = r.finish(errGoexit, time.Since(r.claimed))
		}
		if ours {
			r.end = e
			p.w.settler.in <- r
		} else {
			p.w.leases.drop(r)
			p.w.q.cfg.Logger.Warn("falldue: lease lost while the task ran", "task", r.claim.id, "kind", r.claim.was.kind, "attempt", r.claim.attempts)
		}
		p.unfinished.Add(-1)
		p.finished.Add(1)
		signal(p.freed)
	}()
	if stop.Err() != nil {
		e = r.release()
	} else {
		e, ours = r.execute(work)
	}
	returned = true
}
