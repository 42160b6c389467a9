package falldue

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/store"
)

const (
	// announceEvery is the time between two announcements of a worker.
	announceEvery = 15 * time.Second
	// leaveTimeout is the longest time in which a worker that ends removes itself.
	leaveTimeout = time.Second
	// keepWorkers is how long a worker that has died is kept in the table.
	keepWorkers = time.Hour
)

// announcer keeps the worker in the table of workers, for people. Of what workers do, only the
// deletion of finished tasks of kinds that they do not handle depends on it, see [foreignKinds].
type announcer struct {
	id       string
	info     func() store.WorkerInfo
	running  func() map[string]int // handlers, by queue
	ended    endedRuns
	troubles *troubles
	put      func(context.Context, store.Worker, store.Recent, store.WorkerInfo) error
	see      func(context.Context, store.Worker, store.Recent) (stored bool, err error)
	drop     func(ctx context.Context, id string) error
	events   events

	stopping  atomic.Bool
	changed   chan struct{} // signalled when the info has changed
	announced bool          // the table has the info as it is
	failing   bool
}

func newAnnouncer(id string, info store.WorkerInfo, running func() map[string]int, s *store.Store, e events) *announcer {
	a := &announcer{id: id, running: running, put: s.Announce, see: s.SeeWorker, drop: s.DropWorker, events: e, troubles: newTroubles(), changed: make(chan struct{}, 1)}
	a.troubles.changed = func() { signal(a.changed) }
	a.info = func() store.WorkerInfo {
		info.Stopping = a.stopping.Load()
		a.troubles.into(&info)
		return info
	}
	return a
}

// stop says that the worker claims no more tasks.
func (a *announcer) stop() {
	a.stopping.Store(true)
	signal(a.changed)
}

// work announces the worker until ctx ends, and removes it then.
func (a *announcer) work(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.announce(ctx)
		if ctx.Err() == nil { // else it may have failed because of that
			if err != nil && !a.failing {
				a.events.announceFailed(err)
			}
			a.failing = err != nil
		}
		timer := time.NewTimer(announceEvery + rand.N(announceEvery/20))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.changed:
			a.announced = false
		}
		timer.Stop()
	}
	if !a.failing {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		_ = a.drop(ctx, a.id) // others do so an hour later
	}
}

// announce says that the worker is there. It sends the info only if it is not stored.
func (a *announcer) announce(ctx context.Context) error {
	ctx, cancel := statementContext(ctx, statementTimeout)
	defer cancel()
	all, recent := a.ended.take()
	recent.Running = a.running()
	w := store.Worker{ID: a.id, Done: all.Done, Failed: all.Failed}
	for _, n := range recent.Running {
		w.Running += n
	}
	if a.announced {
		var err error
		if a.announced, err = a.see(ctx, w, recent); err != nil || a.announced {
			return err
		}
	}
	err := a.put(ctx, w, recent, a.info())
	a.announced = err == nil
	return err
}

// infoOf returns what a worker says of itself.
func infoOf(cfg Config, handlers map[string]*handler) store.WorkerInfo {
	host, _ := os.Hostname()
	info := store.WorkerInfo{Host: host, PID: os.Getpid(), Queues: map[string]store.WorkerQueue{}, Kinds: map[string]store.WorkerKind{}}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.Release, info.Library = releaseOf(build), libraryOf(build)
	}
	for name, queue := range cfg.Queues {
		info.Queues[name] = store.WorkerQueue{Concurrency: queue.Concurrency, Limits: limitsOf("queue "+name, queue.Limits)}
	}
	for name, h := range handlers {
		info.Kinds[name] = store.WorkerKind{Policy: h.rule.policy.String(), Limits: h.limits}
	}
	return info
}

// revisionLength is the number of digits of a revision that people look at.
const revisionLength = 12

// releaseOf returns the version of the program's module, or else the revision from which it
// was built.
func releaseOf(build *debug.BuildInfo) string {
	release, revision, modified := build.Main.Version, "", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), revisionLength)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+dirty"
		}
	}
	if (release == "" || release == "(devel)") && revision != "" {
		return revision + modified
	}
	return release
}

// libraryOf returns the version of this module in a program.
func libraryOf(build *debug.BuildInfo) string {
	const path = "github.com/falldue/falldue"
	if build.Main.Path == path {
		return build.Main.Version
	}
	for _, m := range build.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}
