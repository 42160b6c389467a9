// Package upkeep has the background work of a worker besides running tasks: it deletes what is no
// longer needed, opens tasks with dependencies, keeps policies stored, and announces the worker.
package upkeep

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// CleanEvery is the time between two searches for finished tasks whose retention is
// over.
const CleanEvery = time.Minute

// findingShare limits the time in which the cleaner looks for such tasks to a tenth.
const findingShare = 10

// Cleaner is the role that deletes finished tasks whose retention is over. Finished
// tasks are in lanes as waiting ones are, in the order in which they finished, so that
// it reads none that it keeps but the first of each lane.
type Cleaner struct {
	queues     []string
	retentions Retentions
	foreign    orphanKinds
	lanes      func(ctx context.Context, queue, state string) ([]store.Head, error)
	clean      func(context.Context, store.CleanParams) (n int, last int64, err error)
	// dropOrphans drops the progress of tasks that have gone.
	dropOrphans func(context.Context) error
	// dropCancels drops old cancels from the table of changes.
	dropCancels func(context.Context, time.Duration) error
	// dropChanges drops changes after which others were made.
	dropChanges func(context.Context, time.Duration) error
	// dropWorkers drops workers that have died from the table of workers.
	dropWorkers func(context.Context, time.Duration) error
	classify    func(error) dialect.Class
	events      events
}

// NewCleaner returns a cleaner of queues. others is how long tasks of kinds without a handler stay.
func NewCleaner(s *store.Store, queues []string, others run.Retention, handlers map[string]*run.Handler, log *slog.Logger) *Cleaner {
	return &Cleaner{
		queues: queues, retentions: Retentions{others, handlers}, foreign: orphanKinds{announced: s.AnnouncedKinds},
		lanes: s.FinishedLanes, clean: s.Clean, dropOrphans: s.DropOrphanedProgress, dropCancels: s.DropCancels, dropChanges: s.DropOldChanges, dropWorkers: s.DropLostWorkers,
		classify: s.Server().Classify, events: events{log},
	}
}

// Work cleans until ctx ends.
func (c *Cleaner) Work(ctx context.Context) {
	every := c.retentions.Every()
	var dropped, droppedChanges time.Time
	for outages := 0; ; {
		if time.Since(dropped) >= CleanEvery {
			dropped = time.Now()
			if err := c.drop(ctx, c.dropOrphans); err != nil && ctx.Err() == nil {
				c.events.progressFailed(err)
			}
			if err := c.drop(ctx, func(ctx context.Context) error { return c.dropCancels(ctx, control.KeepCancels) }); err != nil && ctx.Err() == nil {
				c.events.changesFailed(err)
			}
			if time.Since(droppedChanges) >= time.Hour {
				droppedChanges = time.Now()
				if err := c.drop(ctx, func(ctx context.Context) error { return c.dropChanges(ctx, control.KeepChanges) }); err != nil && ctx.Err() == nil {
					c.events.changesFailed(err)
				}
			}
			// What makes this fail makes announcing fail, which is logged.
			_ = c.drop(ctx, func(ctx context.Context) error { return c.dropWorkers(ctx, keepWorkers) })
		}
		finding, away := c.CleanAll(ctx)
		pause := max(every, findingShare*finding)
		if away {
			pause, outages = max(pause, retry.ErrorPause(outages)), outages+1
		} else {
			outages = 0
		}
		if retry.Pause(ctx, pause+rand.N(pause/10)) != nil {
			return
		}
	}
}

// finishedStates are the states of tasks that have a retention.
var finishedStates = []string{statements.StateDone, statements.StateDead, statements.StateCancelled}

// CleanAll deletes all tasks whose retention is over, and returns how long it took to find
// their lanes. It gives up when the database is unavailable.
func (c *Cleaner) CleanAll(ctx context.Context) (finding time.Duration, away bool) {
	c.foreign.begin()
	for _, queue := range c.queues {
		for _, state := range finishedStates {
			if c.retentions.Shortest(state) == run.Forever {
				continue
			}
			took, err := c.cleanState(ctx, queue, state)
			if finding += took; err != nil && retry.KindOf(c.classify(err), false) == retry.Outage {
				return finding, true
			}
		}
	}
	return finding, false
}

// cleanState deletes the tasks of a queue and a state whose retention is over, and
// returns how long it took to find their lanes.
func (c *Cleaner) cleanState(ctx context.Context, queue, state string) (finding time.Duration, err error) {
	start := time.Now()
	heads, err := c.find(ctx, queue, state)
	finding = time.Since(start)
	for _, h := range heads {
		if h.Corrupt != nil || ctx.Err() != nil {
			continue
		}
		retention := c.retentions.Of(state, h.Kind)
		if retention == run.Forever || store.Duration(h.Now-h.Anchor) < retention {
			continue
		}
		if c.retentions.Handlers[h.Kind] == nil {
			ours, failed := c.foreign.deletable(ctx, h.Kind)
			if err = errors.Join(err, failed); !ours {
				continue
			}
		}
		// One row that cannot be deleted does not stop the other lanes.
		err = errors.Join(err, c.cleanLane(ctx, queue, h, retention))
	}
	if err != nil && ctx.Err() == nil {
		c.events.cleanFailed(queue, state, err)
	}
	return finding, err
}

// drop drops rows of a table beside the one of tasks.
func (c *Cleaner) drop(ctx context.Context, rows func(context.Context) error) error {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return rows(ctx)
}

// find finds the lanes of finished tasks.
func (c *Cleaner) find(ctx context.Context, queue, state string) ([]store.Head, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	return c.lanes(ctx, queue, state)
}

// maxUndeletable is how many tasks of a lane a pass leaves that cannot be deleted, before
// it goes on with the next lane.
const maxUndeletable = 50

// cleanLane deletes the tasks of a lane whose retention is over, a batch at a time. The
// database may refuse to delete some of them, as when another table refers to them. They
// are found by smaller batches, and left.
func (c *Cleaner) cleanLane(ctx context.Context, queue string, h store.Head, retention time.Duration) (refused error) {
	portion := retry.NewBatchSize()
	p := store.CleanParams{Queue: queue, Lane: h.Lane, Retention: retention, Since: h.Anchor}
	for ctx.Err() == nil && p.Skip < maxUndeletable {
		p.Limit = portion.Size
		n, last, late, err := c.cleanBatch(ctx, p)
		if err == nil {
			portion.Accepted()
			if p.Skip == 0 { // the first p.Skip of those that are left count from there
				p.Since = last
			}
			if n < p.Limit {
				break
			}
			continue
		}
		trouble := retry.KindOf(c.classify(err), late)
		portion.Failed(n, trouble)
		if n == 0 || trouble == retry.Outage || portion.Failures > retry.FailuresBeforePause {
			return err
		}
		if n == 1 {
			p.Skip, refused, portion.Failures = p.Skip+1, err, 0
		}
	}
	return cmp.Or(refused, ctx.Err())
}

func (c *Cleaner) cleanBatch(ctx context.Context, p store.CleanParams) (n int, last int64, late bool, err error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	n, last, err = c.clean(ctx, p)
	return n, last, ctx.Err() != nil, err
}

// PageCleaner is a role that deletes what is no longer needed of a table, some rows at a
// time: the permits of limits, of keys that have no tasks for example, or unique keys. It
// deletes as many as are made, without knowing how many those are: the more of the rows are of no use
// where it looks, the sooner it looks at the next ones.
type PageCleaner[At comparable] struct {
	// drop looks at up to store.MaxBatch rows after one, and returns the last one, or the zero value after
	// all rows, and how many it has deleted.
	drop   func(ctx context.Context, after At, keep time.Duration) (last At, dropped int, err error)
	keep   time.Duration
	failed func(error)
}

const (
	// usefulShare is the share of rows of no use up to which looks are as seldom as they may. With ten
	// times that share they are a hundred times as frequent, up to a tenth of the time.
	usefulShare = 0.01
	// pageWait is the longest time between two looks at some rows. Looks at all of them take
	// longestRound at most if they find nothing, and shortestRound if much of the table is of no use.
	pageWait, longestRound, shortestRound = 5 * time.Second, 30 * time.Minute, time.Minute
	// Between looks at all rows is busyRoundWait if rows were made before the last ones, and else
	// idleRoundWait.
	busyRoundWait, idleRoundWait = time.Minute, 10 * time.Minute
	// keepPermits and keepUniques are how long permits and unique keys are kept that
	// nobody has.
	keepPermits, keepUniques = 10 * time.Minute, 10 * time.Minute
)

// NewUniqueCleaner returns a role that deletes unique keys that no task holds.
func NewUniqueCleaner(s *store.Store, log *slog.Logger) *PageCleaner[string] {
	return &PageCleaner[string]{s.DropKeys, keepUniques, events{log}.uniquesFailed}
}

// NewPermitCleaner returns a role that deletes permits of limits that no task needs.
func NewPermitCleaner(s *store.Store, log *slog.Logger) *PageCleaner[int64] {
	return &PageCleaner[int64]{s.DropPermits, keepPermits, events{log}.permitsFailed}
}

// Work cleans until ctx ends.
func (c *PageCleaner[At]) Work(ctx context.Context) {
	var after, none At
	var last, now round
	for wait := busyRoundWait; retry.Pause(ctx, wait/2+rand.N(wait)) == nil; {
		start := time.Now()
		var dropped int
		after, dropped = c.clean(ctx, after)
		now.pages, now.made = now.pages+1, now.made+dropped
		if after != none {
			if wait = 0; now.pages <= 2*last.pages { // else there are many more than were known
				target := max(sooner(longestRound, last.made, last.pages), shortestRound)
				wait = sooner(min(pageWait, target/time.Duration(max(last.pages, now.pages))), dropped, 1)
			}
			wait = max(wait, findingShare*time.Since(start), time.Millisecond)
			continue
		}
		if last.pages > 0 {
			now.made += max(now.pages-last.pages, 0) * store.MaxBatch
		}
		if wait = idleRoundWait; now.made > 0 {
			wait = busyRoundWait
		}
		last, now = now, round{}
	}
}

// round is what looks at all rows have found.
type round struct {
	pages int
	// made is how many rows have been made since the round before, as far as is known: those
	// that were deleted, and those that there are more of. The latter will be of no use soon.
	made int
}

// sooner returns how long to wait, or to take, instead of a time if so many rows of so many pages
// were of no use.
func sooner(wait time.Duration, dropped, pages int) time.Duration {
	share := float64(dropped) / float64(max(pages, 1)*store.MaxBatch)
	if share <= usefulShare {
		return wait
	}
	return time.Duration(float64(wait) * (usefulShare / share) * (usefulShare / share))
}

// clean deletes some rows, and returns the last one that it looked at, or the zero value
// after all, and how many it has deleted.
func (c *PageCleaner[At]) clean(ctx context.Context, after At) (last At, dropped int) {
	limited, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	last, dropped, err := c.drop(limited, after, c.keep)
	if err != nil && ctx.Err() == nil {
		c.failed(err)
	}
	return last, dropped
}

// Retentions returns how long finished tasks of the kinds that a worker handles stay in the
// table, and those of all other kinds.
type Retentions struct {
	Others   run.Retention
	Handlers map[string]*run.Handler // by kind
}

// Of returns how long tasks of a kind that finished in a state stay, or forever.
func (r Retentions) Of(state, kind string) time.Duration {
	if h := r.Handlers[kind]; h != nil {
		return h.Retention.Of(state)
	}
	return r.Others.Of(state)
}

// Shortest returns the shortest retention of a state, but forever for none.
func (r Retentions) Shortest(state string) time.Duration {
	least := r.Others.Of(state)
	for kind := range r.Handlers {
		if d := r.Of(state, kind); d != run.Forever && (least == run.Forever || d < least) {
			least = d
		}
	}
	return least
}

// Every returns the time between two rounds of the cleaner: a second or more.
func (r Retentions) Every() time.Duration {
	every := CleanEvery
	for _, state := range finishedStates {
		least := r.Shortest(state)
		if least == run.Forever || state == statements.StateDone && least == 0 { // deleted when they are settled
			continue
		}
		every = min(every, max(least, time.Second))
	}
	return every
}
