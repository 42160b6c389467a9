// Package upkeep does the background work of a worker other than running tasks. It deletes rows that
// are no longer needed, opens tasks with dependencies, keeps policies stored, and announces the worker.
package upkeep

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// CleanEvery is the time between two searches for finished tasks whose retention has expired.
const CleanEvery = time.Minute

// findPauseFactor limits the searches to a tenth of the time.
const findPauseFactor = 10

// Cleaner is the role that deletes finished tasks whose retention has expired. Finished tasks are in
// lanes as waiting tasks are, in the order in which they finished. Of the tasks that stay, the cleaner
// reads only the first of each lane.
type Cleaner struct {
	queues     []string
	retentions Retentions
	orphans    orphanKinds
	chores     []*chore
	table      cleanTable
	events     events
}

// cleanTable finds and deletes finished tasks.
type cleanTable interface {
	FinishedLanesOf(ctx context.Context, queues []string, state string) ([]store.Found, error)
	Clean(context.Context, store.CleanParams) (n int, last int64, err error)
	Classify(error) dialect.Class
}

// cleanTables are all tables that a cleaner needs.
type cleanTables interface {
	cleanTable
	choreTables
	workersTable
}

// NewCleaner returns a cleaner of queues. others is how long tasks of kinds without a handler stay.
func NewCleaner(tables cleanTables, queues []string, others run.Retention, handlers map[string]*run.Handler, log *slog.Logger) *Cleaner {
	return &Cleaner{
		queues: queues, retentions: Retentions{others, handlers}, orphans: orphanKinds{workers: tables}, chores: choresOf(tables, events{log}),
		table: tables, events: events{log},
	}
}

// Work cleans until ctx ends.
func (c *Cleaner) Work(ctx context.Context) {
	every := c.retentions.Every()
	for outages := 0; ; {
		for _, chore := range c.chores {
			chore.doIfDue(ctx)
		}
		finding, away := c.CleanAll(ctx)
		pause := max(every, findPauseFactor*finding)
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

// CleanAll deletes all tasks whose retention has expired, and returns how long it took to find their
// lanes. It gives up when the database is unavailable.
func (c *Cleaner) CleanAll(ctx context.Context) (finding time.Duration, away bool) {
	c.orphans.begin()
	for _, state := range finishedStates {
		if c.retentions.Shortest(state) == run.Forever {
			continue
		}
		took, err := c.cleanState(ctx, state)
		if finding += took; err != nil && retry.KindOf(c.table.Classify(err), false) == retry.Outage {
			return finding, true
		}
	}
	return finding, false
}

// cleanState deletes the tasks of a state after their retention, and returns the time that
// the search for their lanes took.
func (c *Cleaner) cleanState(ctx context.Context, state string) (finding time.Duration, err error) {
	start := time.Now()
	found, err := c.find(ctx, state)
	finding = time.Since(start)
	if err != nil && ctx.Err() == nil {
		c.events.cleanFailed(strings.Join(c.queues, " "), state, err)
	}
	for _, f := range found {
		retention := c.retentions.Of(state, f.Kind)
		if f.Corrupt != nil || ctx.Err() != nil || retention == run.Forever || store.Duration(f.Now-f.Anchor) < retention {
			continue
		}
		// One row that cannot be deleted does not stop the other lanes.
		if failed := c.cleanIfOurs(ctx, f, retention); failed != nil {
			if err = errors.Join(err, failed); ctx.Err() == nil {
				c.events.cleanFailed(f.Queue, state, failed)
			}
		}
	}
	return finding, err
}

// cleanIfOurs cleans a lane, unless another worker does so, which handles its kind.
func (c *Cleaner) cleanIfOurs(ctx context.Context, f store.Found, retention time.Duration) error {
	if c.retentions.Handlers[f.Kind] == nil {
		if ours, err := c.orphans.deletable(ctx, f.Kind); !ours {
			return err
		}
	}
	return c.cleanLane(ctx, f.Queue, f.Head, retention)
}

// find finds the lanes of finished tasks.
func (c *Cleaner) find(ctx context.Context, state string) ([]store.Found, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	return c.table.FinishedLanesOf(ctx, c.queues, state)
}

// maxUndeletable is how many tasks a pass may fail to delete in a lane, before it continues with the
// next lane.
const maxUndeletable = 50

// cleanLane deletes the tasks of a lane whose retention has expired, a batch at a time. The database may
// refuse to delete some tasks, if another table refers to them for example. Smaller batches find these
// tasks, which stay.
func (c *Cleaner) cleanLane(ctx context.Context, queue string, h store.Head, retention time.Duration) (refused error) {
	batch := retry.NewBatchSize()
	p := store.CleanParams{Queue: queue, Lane: h.Lane, Retention: retention, Since: h.Anchor}
	for ctx.Err() == nil && p.Skip < maxUndeletable {
		p.Limit = batch.Size
		n, last, late, err := c.cleanBatch(ctx, p)
		if err == nil {
			batch.Accepted()
			if p.Skip == 0 { // p.Skip counts the tasks left from there
				p.Since = last
			}
			if n < p.Limit {
				break
			}
			continue
		}
		if failure, _ := batch.Failed(n, c.table.Classify(err), late); n == 0 || batch.Hopeless(failure) {
			return err
		}
		if n == 1 {
			p.Skip, refused, batch.Failures = p.Skip+1, err, 0
		}
	}
	return cmp.Or(refused, ctx.Err())
}

func (c *Cleaner) cleanBatch(ctx context.Context, p store.CleanParams) (n int, last int64, late bool, err error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	n, last, err = c.table.Clean(ctx, p)
	return n, last, ctx.Err() != nil, err
}

// Retentions is how long finished tasks stay in the table, by kind.
type Retentions struct {
	Others   run.Retention           // of kinds that the worker does not handle
	Handlers map[string]*run.Handler // by kind
}

// Of returns how long tasks of a kind stay that finished in a state, or Forever.
func (r Retentions) Of(state, kind string) time.Duration {
	if h := r.Handlers[kind]; h != nil {
		return h.Retention.Of(state)
	}
	return r.Others.Of(state)
}

// Shortest returns the shortest retention of a state, or Forever.
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
		if least == run.Forever || state == statements.StateDone && least == 0 { // the settler deletes these
			continue
		}
		every = min(every, max(least, time.Second))
	}
	return every
}
