package upkeep

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

const (
	// unusedEvery is the time between two lines of the log about a kind or a queue.
	unusedEvery = time.Minute
	// manyUncounted is the number of tasks after which a limit is reported before the next minute.
	manyUncounted = 10
)

// UnusedLimits is the role that reports limits per key that have counted none of the worker's tasks: the tasks have no
// key, or their keys lack the part that the limit names. Such a limit holds nothing back, without an error.
type UnusedLimits struct {
	kinds, queues map[string][]*keyLimit // queues by name or pattern
	health        *control.HealthReport
	events        events
	woken         chan struct{}
}

// keyLimit is a limit per key, and the tasks that it has not counted.
type keyLimit struct {
	store.Limit
	used      atomic.Bool // it has counted a task
	uncounted atomic.Int64
	last      atomic.Int64 // the ID of a task that it has not counted
	reported  bool         // only Work uses it
}

// NewUnusedLimits returns a role that reports unused limits in health. queues has the limits of a worker's queues.
func NewUnusedLimits(handlers map[string]*run.Handler, queues map[string][]store.Limit, health *control.HealthReport, log *slog.Logger) *UnusedLimits {
	kinds := map[string][]store.Limit{}
	for kind, h := range handlers {
		kinds[kind] = h.Limits
	}
	return &UnusedLimits{kinds: perKey(kinds), queues: perKey(queues), health: health, events: events{log}, woken: make(chan struct{}, 1)}
}

// perKey returns the limits per key of each owner that has any.
func perKey(owners map[string][]store.Limit) map[string][]*keyLimit {
	list := map[string][]*keyLimit{}
	for owner, limits := range owners {
		for _, l := range limits {
			if l.PerKey {
				list[owner] = append(list[owner], &keyLimit{Limit: l})
			}
		}
	}
	return list
}

// Any reports whether there is a limit per key.
func (u *UnusedLimits) Any() bool { return len(u.kinds)+len(u.queues) > 0 }

// Started notes that a run has begun.
func (u *UnusedLimits) Started(r *run.Run) {
	u.count(u.kinds[r.Claim.From.Kind], r)
	if len(u.queues) > 0 {
		queue, _ := pattern.Find(u.queues, r.Queue)
		u.count(u.queues[queue], r)
	}
}

func (u *UnusedLimits) count(limits []*keyLimit, r *run.Run) {
	for _, l := range limits {
		if l.used.Load() {
			continue
		}
		if l.Applies(r.Claim.From.Key) {
			l.used.Store(true)
			retry.Signal(u.woken)
			continue
		}
		l.last.Store(r.Claim.ID)
		if l.uncounted.Add(1) == manyUncounted {
			retry.Signal(u.woken)
		}
	}
}

// Work reports until ctx ends.
func (u *UnusedLimits) Work(ctx context.Context) {
	logged := map[string]time.Time{}
	for next := time.Now().Add(unusedEvery); ; {
		retry.Await(ctx, u.woken, time.Until(next))
		if ctx.Err() != nil {
			return
		}
		now, least := time.Now(), int64(manyUncounted)
		if !now.Before(next) {
			next, least = now.Add(unusedEvery), 1
		}
		texts := map[string]string{}
		for name, owners := range map[string]map[string][]*keyLimit{"kind": u.kinds, "queue": u.queues} {
			for _, owner := range slices.Sorted(maps.Keys(owners)) {
				unused := unusedOf(owners[owner], least)
				if len(unused.texts) == 0 {
					continue
				}
				unused.owner, unused.name = name, owner
				texts[name+" "+owner] = strings.Join(unused.texts, ", ")
				if now.Sub(logged[name+" "+owner]) >= unusedEvery {
					logged[name+" "+owner] = now
					u.events.unusedLimits(unused)
				}
			}
		}
		u.health.UnusedLimits(texts)
	}
}

// unused are the limits of a kind or a queue that have counted no task.
type unused struct {
	owner, name string // such as kind and charge
	texts       []string
	count, last int64 // how many tasks they have not counted, and one of them
}

// unusedOf returns the limits that have counted no task, out of at least so many or when they were reported before.
func unusedOf(limits []*keyLimit, least int64) (of unused) {
	for _, l := range limits {
		n := l.uncounted.Load()
		if l.reported = !l.used.Load() && (l.reported || n >= least); l.reported {
			of.texts, of.count, of.last = append(of.texts, l.Text), max(of.count, n), l.last.Load()
		}
	}
	return of
}
