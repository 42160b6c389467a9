package upkeep

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

const (
	// announceEvery is the time between two announcements of a worker.
	announceEvery = 15 * time.Second
	// leaveTimeout is the longest time in which a worker that ends removes itself.
	leaveTimeout = time.Second
	// announcedRuns is the greatest number of runs that an announcement lists: 10 kB at most.
	announcedRuns = 100
	// keepWorkers is how long a worker that has died is kept in the table.
	keepWorkers = time.Hour
)

// Announcer keeps the worker in the table of workers, for people. Workers themselves read the table
// only before they delete finished tasks of kinds without a handler, see [orphanKinds].
type Announcer struct {
	id       string
	code     store.WorkerInfo // the part that does not change
	handlers handlers
	leases   leases
	ended    *run.EndedRuns
	health   *control.HealthReport
	table    announceTable
	events   events

	stopping  atomic.Bool
	announced bool // the table has the current info
	failing   bool
}

// handlers counts the handlers that run.
type handlers interface {
	// Running returns how many handlers of each queue run.
	Running() map[string]int
}

// leases has the leases of a worker.
type leases interface {
	// Sorted returns the leases in the order of their tasks' IDs.
	Sorted() []*lease.Lease
}

// announceTable is the table of workers.
type announceTable interface {
	// Announce stores the row of a worker.
	Announce(context.Context, store.Worker, store.Recent, store.WorkerInfo) error
	// SeeWorker updates the row of a worker, and reports whether the row is there.
	SeeWorker(context.Context, store.Worker, store.Recent) (stored bool, err error)
	DropWorker(ctx context.Context, id string) error
}

// NewAnnouncer returns an announcer of a worker. info describes the worker's code.
func NewAnnouncer(id string, info store.WorkerInfo, handlers handlers, leases leases, ended *run.EndedRuns, health *control.HealthReport, table announceTable, log *slog.Logger) *Announcer {
	return &Announcer{id: id, code: info, handlers: handlers, leases: leases, ended: ended, health: health, table: table, events: events{log}}
}

// Info returns the worker's announcement.
func (a *Announcer) Info() store.WorkerInfo {
	info := a.code
	info.Stopping = a.stopping.Load()
	a.health.AddTo(&info)
	return info
}

// Stop announces that the worker claims no more tasks.
func (a *Announcer) Stop() {
	a.stopping.Store(true)
	retry.Signal(a.health.Changed)
}

// Work announces the worker until ctx ends, and removes it then.
func (a *Announcer) Work(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.announce(ctx)
		if ctx.Err() == nil { // an error may only mean that ctx has ended
			if err != nil {
				a.events.announceFailed(err, a.failing)
			}
			a.failing = err != nil
		}
		timer := time.NewTimer(announceEvery + rand.N(announceEvery/20))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.health.Changed:
			a.announced = false
		}
		timer.Stop()
	}
	if !a.failing {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		_ = a.table.DropWorker(ctx, a.id) // after a failure another worker deletes the row an hour later
	}
}

// announce updates the row of the worker. It sends the info only if the table lacks it.
func (a *Announcer) announce(ctx context.Context) error {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	all, recent := a.ended.Take()
	recent.Running, recent.Longest = a.handlers.Running(), longest(a.leases.Sorted())
	w := store.Worker{ID: a.id, Done: all.Done, Failed: all.Failed}
	for _, n := range recent.Running {
		w.Running += n
	}
	if a.announced {
		var err error
		if a.announced, err = a.table.SeeWorker(ctx, w, recent); err != nil || a.announced {
			return err
		}
	}
	err := a.table.Announce(ctx, w, recent, a.Info())
	a.announced = err == nil
	return err
}

// longest returns the tasks that were claimed first, up to announcedRuns.
func longest(list []*lease.Lease) []store.RunningTask {
	slices.SortStableFunc(list, func(a, b *lease.Lease) int { return cmp.Compare(a.Claim.Now, b.Claim.Now) })
	tasks := make([]store.RunningTask, min(len(list), announcedRuns))
	for i := range tasks {
		l := list[i]
		tasks[i] = store.RunningTask{ID: l.Claim.ID, Kind: l.Claim.From.Kind, Queue: l.Queue, Attempt: l.Claim.Attempts, Since: l.Claim.Now}
	}
	return tasks
}
