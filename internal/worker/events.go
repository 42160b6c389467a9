package worker

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/retry"
)

// events logs how a worker starts and stops.
// It has one method for each log line.
type events struct{ log *slog.Logger }

// namedKinds is how many kinds the line about a start names.
const namedKinds = 50

// started reports that the worker has started.
func (e events) started(cfg Config) {
	kinds := slices.Sorted(maps.Keys(cfg.Handlers))
	e.log.Info("falldue: the worker has started", "worker", cfg.ID, "queues", slices.Sorted(maps.Keys(cfg.Queues)),
		"kinds", kinds[:min(len(kinds), namedKinds)], "count", len(kinds), "release", cfg.Info.Release)
}

// stopped reports that the worker has stopped, and how many tasks it has settled.
func (e events) stopped(cfg Config, done, failed int64) {
	e.log.Info("falldue: the worker has stopped", "worker", cfg.ID, "done", done, "failed", failed)
}

// stopping reports that a worker waits for its handlers before it stops, unless none run.
func (e events) stopping(handlers int, timeout time.Duration) {
	if handlers > 0 {
		e.log.Info("falldue: the worker stops and waits for its handlers", "count", handlers, "timeout", timeout)
	}
}

// namedTasks is how many tasks the line about handlers that have not returned names.
const namedTasks = 20

// stillRunning reports handlers that have not returned although the shutdown timeout has expired.
func (e events) stillRunning(list []*lease.Lease) {
	var ids []int64
	kinds := map[string]bool{}
	for i, l := range list {
		if kinds[l.Claim.From.Kind] = true; i < namedTasks {
			ids = append(ids, l.Claim.ID)
		}
	}
	e.log.Warn("falldue: the worker waits for handlers that have not returned", "count", len(list), "tasks", ids, "kinds", slices.Sorted(maps.Keys(kinds)))
}

// queuesNotListed reports that new queues which match a pattern are not found.
func (e events) queuesNotListed(err error) {
	e.log.Warn("falldue: cannot list the queues that match a pattern", retry.Failed(err))
}

func (e events) kindWithoutQueue(kind, queue string) {
	e.log.Warn("falldue: this worker handles a kind, but does not work on its queue", "kind", kind, "queue", queue)
}
