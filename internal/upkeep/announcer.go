package upkeep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

const (
	// AnnounceEvery is the time between two announcements of a worker.
	announceEvery = 15 * time.Second
	// leaveTimeout is the longest time in which a worker that ends removes itself.
	leaveTimeout = time.Second
	// keepWorkers is how long a worker that has died is kept in the table.
	keepWorkers = time.Hour
)

// Announcer keeps the worker in the table of workers, for people. Of what workers do, only the
// deletion of finished tasks of kinds that they do not handle depends on it, see [foreignKinds].
type Announcer struct {
	id       string
	code     store.WorkerInfo      // what does not change
	running  func() map[string]int // handlers, by queue
	ended    *run.EndedRuns
	troubles *control.HealthReport
	put      func(context.Context, store.Worker, store.Recent, store.WorkerInfo) error
	see      func(context.Context, store.Worker, store.Recent) (stored bool, err error)
	drop     func(ctx context.Context, id string) error
	events   events

	stopping  atomic.Bool
	announced bool // the table has the info as it is
	failing   bool
}

// NewAnnouncer returns an announcer of a worker whose code is described by info.
func NewAnnouncer(id string, info store.WorkerInfo, running func() map[string]int, ended *run.EndedRuns, troubles *control.HealthReport, s *store.Store, log *slog.Logger) *Announcer {
	return &Announcer{id: id, code: info, running: running, ended: ended, troubles: troubles, put: s.Announce, see: s.SeeWorker, drop: s.DropWorker, events: events{log}}
}

// Info returns what the worker announces of itself.
func (a *Announcer) Info() store.WorkerInfo {
	info := a.code
	info.Stopping = a.stopping.Load()
	a.troubles.AddTo(&info)
	return info
}

// Stop says that the worker claims no more tasks.
func (a *Announcer) Stop() {
	a.stopping.Store(true)
	retry.Signal(a.troubles.Changed)
}

// Work announces the worker until ctx ends, and removes it then.
func (a *Announcer) Work(ctx context.Context) {
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
		case <-a.troubles.Changed:
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
func (a *Announcer) announce(ctx context.Context) error {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	all, recent := a.ended.Take()
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
	err := a.put(ctx, w, recent, a.Info())
	a.announced = err == nil
	return err
}
