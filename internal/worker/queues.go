package worker

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/claim"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// settings are the settings of a worker's queues, by name or pattern.
type settings map[string]Queue

// works reports whether the worker works on a queue.
func (s settings) works(queue string) bool {
	_, works := pattern.Find(s, queue)
	return works
}

// prefixes returns the prefixes of the patterns, without those that begin with another one.
func (s settings) prefixes() (prefixes []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if p := pattern.Prefix(name); pattern.Is(name) && !slices.ContainsFunc(prefixes, func(q string) bool { return strings.HasPrefix(p, q) }) {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// wantedQueues are queues that match a pattern, may have tasks, and have no poller.
type wantedQueues struct {
	settings settings
	patterns bool          // there are patterns
	woken    chan struct{} // signalled when a queue is wanted

	mu    sync.Mutex
	names map[string]bool
}

func newWantedQueues(s settings) *wantedQueues {
	return &wantedQueues{settings: s, patterns: len(s.prefixes()) > 0, woken: make(chan struct{}, 1), names: map[string]bool{}}
}

// want adds a queue if it matches a pattern, and reports whether it does.
func (w *wantedQueues) want(queue string) bool {
	if !w.patterns || !w.settings.works(queue) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[queue] = true
	retry.Signal(w.woken)
	return true
}

// take removes and returns all queues.
func (w *wantedQueues) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Collect(maps.Keys(w.names))
	clear(w.names)
	return list
}

// queues has a poller for each queue of a worker. It finds queues that match the worker's patterns while the worker
// runs, and adds a poller for each. Pollers of one pattern share its handlers.
type queues struct {
	settings    settings
	wanted      *wantedQueues
	interval    time.Duration // the poll interval
	pollers     *claim.Pollers
	dispatchers dispatchers
	poller      claim.PollerConfig // the part that does not depend on the queue
	policies    func(queue string) *control.Policies
	table       queuesTable
	events      events

	// Only Work uses these, and List:
	found    map[string]*foundQueue
	failures int // of lists in a row
}

// starter starts a poller, and returns a function that stops it.
type starter func(*claim.Poller) (stop func())

// queuesTable lists queues.
type queuesTable interface {
	QueuesWith(ctx context.Context, prefix string) ([]string, error)
	SlotName(queue string, kinds []string) int64
}

// foundQueue is a queue that was found by a pattern and has a poller.
type foundQueue struct {
	stop func()
	seen time.Time // when it last had a task
}

const (
	// listPauseFactor limits the search for queues to a hundredth of the time: it finds what probes and notifications
	// have missed.
	listPauseFactor = 100
	// asleepFactor is how much longer than the poll interval the pauses of a worker are that is asleep.
	asleepFactor = 8
	// keepEmpty is how long the poller of a queue without any task stays.
	keepEmpty = 10 * time.Minute
)

// add adds a poller of a queue, which has the settings of a name or a pattern.
func (q *queues) add(name, queue string) *claim.Poller {
	cfg, settings, dispatcher := q.poller, q.settings[name], q.dispatchers[name]
	if name != queue {
		dispatcher = dispatcher.For(queue)
	}
	cfg.Queue, cfg.LowShare, cfg.Budget, cfg.Dispatcher = queue, settings.LowShare, dispatcher.Budget, dispatcher
	cfg.Policies, cfg.Slot = q.policies(queue), q.table.SlotName(queue, kindsOf(cfg.Handlers, queue))
	cfg.Limiter = claim.NewLimiter(store.QueueLimits(queue, settings.Limits), cfg.Handlers)
	p := claim.NewPoller(cfg)
	q.pollers.Add(p)
	return p
}

// dispatcher returns the dispatcher of a queue's tasks.
func (q *queues) dispatcher(queue string) *run.Dispatcher {
	name, _ := pattern.Find(q.settings, queue)
	return q.dispatchers[name].For(queue)
}

// Work runs the pollers until ctx ends, and waits for them.
func (q *queues) Work(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	start := func(p *claim.Poller) (stop func()) {
		ctx, stop := context.WithCancel(ctx)
		running.Go(func() { p.Loop(ctx) })
		running.Go(func() { p.Assist(ctx) })
		running.Go(func() { p.ExpireLate(ctx) })
		return stop
	}
	for p := range q.pollers.All() {
		start(p) // until ctx ends
	}
	if !q.wanted.patterns {
		<-ctx.Done()
		return
	}
	for next := time.Now(); ctx.Err() == nil; retry.Await(ctx, q.wanted.woken, time.Until(next)) {
		q.meet(q.wanted.take(), time.Now(), start)
		if !time.Now().Before(next) {
			next = q.search(ctx, start)
		}
	}
}

// search lists the queues, and returns when to list them again.
func (q *queues) search(ctx context.Context, start starter) time.Time {
	began := time.Now()
	if err := q.list(ctx, start); err != nil {
		if ctx.Err() == nil {
			q.events.queuesNotListed(err)
		}
		q.failures++
		return time.Now().Add(retry.ErrorPause(q.failures - 1))
	}
	q.failures = 0
	pause := q.interval
	if q.pollers.Asleep() {
		pause *= asleepFactor
	}
	return time.Now().Add(max(pause, listPauseFactor*time.Since(began)))
}

// List adds pollers for the queues that match a pattern and have tasks, without starting them.
func (q *queues) List(ctx context.Context) error {
	return q.list(ctx, func(*claim.Poller) func() { return func() {} })
}

// list adds pollers for the queues that match a pattern and have tasks. Pollers of queues that have had no task for
// keepEmpty end.
func (q *queues) list(ctx context.Context, start starter) error {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	now := time.Now()
	for _, prefix := range q.settings.prefixes() {
		list, err := q.table.QueuesWith(ctx, prefix)
		if err != nil {
			return err
		}
		q.meet(list, now, start)
	}
	for queue, f := range q.found {
		if now.Sub(f.seen) > keepEmpty {
			q.pollers.Remove(queue)
			f.stop()
			delete(q.found, queue)
		}
	}
	return nil
}

// meet adds a poller for each queue of a list that matches a pattern and has none. The queues have tasks now.
func (q *queues) meet(list []string, now time.Time, start starter) {
	for _, queue := range list {
		name, works := pattern.Find(q.settings, queue)
		if !works || name == queue {
			continue
		}
		if q.found[queue] == nil {
			q.found[queue] = &foundQueue{stop: start(q.add(name, queue))}
		}
		q.found[queue].seen = now
	}
}
