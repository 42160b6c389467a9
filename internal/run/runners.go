package run

import (
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// maxWait is how long a claimed task may wait for a handler. After that the task is released, so that
// an idle worker can run it.
const maxWait = time.Second

// runners run the claimed tasks of a queue in the order in which they were added, up to limit
// concurrently. A goroutine runs one task after the other and ends when none waits. When it takes a
// task and others wait, it starts another goroutine, one at a time. Slow handlers therefore all run in
// parallel, and fast handlers run in a few goroutines that have grown their stacks already.
type runners struct {
	limit   int
	handler taskHandler
	budget  *Budget       // is told of each run that has ended, when the next one may start
	queued  chan struct{} // signalled when tasks wait
	All     sync.WaitGroup

	mu       sync.Mutex
	waiting  []*Run
	running  int  // goroutines
	busy     int  // goroutines that run a task
	starting bool // a goroutine has not taken its first task yet
}

// taskHandler runs the handler of a task.
type taskHandler interface {
	Handle(*Run)
}

func newRunners(b *Budget, h taskHandler) *runners {
	return &runners{limit: b.Limit, handler: h, budget: b, queued: make(chan struct{}, 1)}
}

// add adds runs. A task's last attempt never waits, since the attempt would be used up if the worker
// died: add puts last attempts first, and refuses last attempts without a free handler.
func (r *runners) add(runs ...*Run) (refused []*Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var first []*Run
	free := r.limit - r.busy - len(r.waiting)
	for _, one := range runs {
		one.queued = now
		switch {
		case !one.IsLast():
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
	defer func() { // even when a handler calls runtime.Goexit
		r.mu.Lock()
		r.running--
		r.ended(current)
		r.start()
		r.mu.Unlock()
		if current != nil {
			r.budget.returned()
		}
	}()
	r.mu.Lock()
	r.starting = false
	r.mu.Unlock()
	for {
		last := current
		current = r.next(last)
		if last != nil {
			r.budget.returned()
		}
		if current == nil {
			return
		}
		r.handler.Handle(current)
	}
}

// next records that last, unless nil, has ended. It removes and returns the task that has waited
// longest, or nil if none waits.
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

// ended records that run, unless nil, has ended. The caller holds mu.
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

// remove removes the waiting tasks that match, and calls removed with them. A drain waits for that
// call, so that a caller of drain and All.Wait also waits for the goroutines that removed starts.
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

// overdue removes and returns the tasks that have waited for maxWait. next is the time until another
// task has, or 0 if no other task waits.
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
