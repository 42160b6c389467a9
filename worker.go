package falldue

import (
	"context"
	"sync"
	"time"
)

// worker is one Run: a poller for each queue, and the settler, the leases and
// the cleaner that they share. Data flows one way: poller → handler → settler.
type worker struct {
	q        *Queue
	id       string
	handlers map[string]*handler
	pollers  map[string]*poller
	settler  *settler
	leases   *leases
}

func newWorker(q *Queue, handlers map[string]*handler) *worker {
	w := &worker{q: q, id: q.cfg.workerID(), handlers: handlers, pollers: map[string]*poller{}}
	w.settler = newSettler(w)
	w.leases = newLeases(w)
	for name, queue := range q.cfg.Queues {
		w.pollers[name] = newPoller(w, name, queue.Concurrency)
	}
	return w
}

// run works until ctx ends, and returns when nothing of it is left.
func (w *worker) run(ctx context.Context) {
	// To stop fetching is not to stop working: handlers get a context of their
	// own, which ends when the grace period is over.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	// Leases and settles go on until the last handler has returned.
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAfter()

	var background, fetching, handling sync.WaitGroup
	background.Go(func() { w.leases.loop(after) })
	background.Go(w.settler.loop)
	background.Go(func() { w.clean(ctx) })
	if w.q.cfg.Listen != nil {
		background.Go(func() { w.listen(ctx) })
	}
	for _, p := range w.pollers {
		p.runs = runners{limit: p.limit, run: func(r *run) { p.handle(ctx, work, r) }}
		fetching.Go(func() { p.loop(ctx) })
		fetching.Go(func() { p.assist(ctx) })
	}

	<-ctx.Done()
	fetching.Wait()
	for _, p := range w.pollers {
		handling.Go(func() {
			for _, r := range p.runs.leave() {
				p.handle(ctx, work, r) // which gives it back
			}
			p.runs.all.Wait()
		})
	}
	handled := make(chan struct{})
	go func() { handling.Wait(); close(handled) }()
	grace := time.NewTimer(w.q.cfg.ShutdownTimeout)
	defer grace.Stop()
	select {
	case <-handled:
	case <-grace.C:
		cancel(ErrStopping)
		<-handled
	}
	close(w.settler.in)
	<-w.settler.done
	stopAfter()
	background.Wait()
}

// listen lets other processes wake the pollers, until ctx ends.
func (w *worker) listen(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		err := w.q.cfg.Listen(ctx, w.q.store.channel(), w.q.Wake)
		if ctx.Err() == nil {
			w.q.cfg.Logger.Warn("falldue: cannot listen; tasks of other processes are polled for", "error", err)
			_ = pause(ctx, errorPause(try))
		}
	}
}
