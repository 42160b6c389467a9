// Package upkeep does the background work of a worker other than running tasks. It deletes rows that
// are no longer needed, opens tasks with dependencies, keeps policies stored, and announces the worker.
package upkeep

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
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
	queues     func() []string // of the worker
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
	FirstToKeep(ctx context.Context, queue string, at store.Lane, most int) (anchor int64, err error)
	Classify(error) dialect.Class
}

// cleanTables are all tables that a cleaner needs.
type cleanTables interface {
	cleanTable
	choreTables
	workersTable
}

// NewCleaner returns a cleaner of queues. others is how long tasks of kinds without a handler stay.
func NewCleaner(tables cleanTables, queues func() []string, others run.Retention, handlers map[string]*run.Handler, log *slog.Logger) *Cleaner {
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
// lanes. If the database is unavailable, CleanAll gives up, and away is true.
func (c *Cleaner) CleanAll(ctx context.Context) (finding time.Duration, away bool) {
	c.orphans.begin()
	for _, state := range finishedStates {
		limited := state == statements.StateDone && c.retentions.limited()
		if c.retentions.Shortest(state) == run.Forever && !limited {
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
		c.events.cleanFailed(strings.Join(c.queues(), " "), state, err)
	}
	clean := func(f store.Found, how func(store.Found) error) {
		// One row that cannot be deleted does not stop the other lanes.
		if failed := c.ifOurs(ctx, f, how); failed != nil {
			if err = errors.Join(err, failed); ctx.Err() == nil {
				c.events.cleanFailed(f.Queue, state, failed)
			}
		}
	}
	found = slices.DeleteFunc(found, func(f store.Found) bool { return f.Corrupt != nil })
	for _, f := range found {
		retention := c.retentions.Of(state, f.Kind)
		if ctx.Err() != nil || retention == run.Forever || store.Duration(f.Now-f.Anchor) < retention {
			continue
		}
		clean(f, func(f store.Found) error { return c.cleanLane(ctx, f, retention, 0) })
	}
	if state == statements.StateDone {
		list, checks := c.retentions.surplus(found), 0
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, s := range list {
			if s.keep > 0 {
				if checks == maxChecks {
					continue
				}
				checks++
			}
			clean(s.Found, func(f store.Found) error { return c.cleanSurplus(ctx, f, s.keep) })
		}
	}
	return finding, err
}

// ifOurs cleans a lane, unless workers that handle its kind do so.
func (c *Cleaner) ifOurs(ctx context.Context, f store.Found, clean func(store.Found) error) error {
	if c.retentions.Handlers[f.Kind] == nil {
		if ours, err := c.orphans.deletable(ctx, f.Kind); !ours {
			return err
		}
	}
	return clean(f)
}

// cleanSurplus deletes all tasks of a lane except the last ones. Tasks that have finished in one statement are deleted
// together or not at all.
func (c *Cleaner) cleanSurplus(ctx context.Context, f store.Found, keep int) error {
	upTo := f.Now
	if keep > 0 {
		short, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
		defer cancel()
		first, err := c.table.FirstToKeep(short, f.Queue, f.Lane, keep)
		if err != nil || first <= f.Anchor {
			return err
		}
		upTo = first - 1
	}
	return c.cleanLane(ctx, f, 0, upTo)
}

// maxChecks is the greatest number of lanes in which a pass searches for the first done task to keep. The pass chooses
// the lanes at random, so that its cost is bounded with very many keys.
const maxChecks = 100

// find finds the lanes of finished tasks.
func (c *Cleaner) find(ctx context.Context, state string) ([]store.Found, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	queues := c.queues()
	if len(queues) == 0 { // none matches the worker's patterns
		return nil, nil
	}
	return c.table.FinishedLanesOf(ctx, queues, state)
}

// maxUndeletable is how many tasks a pass may fail to delete in a lane, before it continues with the
// next lane.
const maxUndeletable = 50

// cleanLane deletes the tasks of a lane whose retention has expired, up to an anchor unless that is 0, a batch at a
// time. The database may refuse to delete some tasks, if another table refers to them for example. Smaller batches find
// these tasks, which stay.
func (c *Cleaner) cleanLane(ctx context.Context, f store.Found, retention time.Duration, upTo int64) (refused error) {
	batch := retry.NewBatchSize()
	p := store.CleanParams{Queue: f.Queue, Lane: f.Lane, Retention: retention, UpTo: upTo, Since: f.Anchor}
	for ctx.Err() == nil && p.Skip < maxUndeletable {
		p.Limit = batch.Size
		n, last, late, err := c.cleanBatch(ctx, p)
		if err == nil {
			batch.Accepted()
			if p.Skip == 0 { // p.Skip counts from p.Since on
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

// Of returns how long tasks of a kind that finished in a state stay, or Forever.
func (r Retentions) Of(state, kind string) time.Duration {
	if h := r.Handlers[kind]; h != nil {
		return h.Retention.Of(state)
	}
	return r.Others.Of(state)
}

// surplus is a lane with a limit of done tasks, and how many of them stay.
type surplus struct {
	store.Found
	keep int
}

// surplus divides the limits of done tasks. Each lane of a kind in a queue gets an equal part. If there are more lanes
// than tasks may stay, the lanes with the oldest first tasks get none.
func (r Retentions) surplus(found []store.Found) (list []surplus) {
	type pair struct{ queue, kind string }
	lanes := map[pair][]store.Found{}
	for _, f := range found {
		if r.maxDone(f.Kind) > 0 {
			at := pair{f.Queue, f.Kind}
			lanes[at] = append(lanes[at], f)
		}
	}
	for at, all := range lanes {
		most := r.maxDone(at.kind)
		slices.SortFunc(all, func(a, b store.Found) int { return cmp.Compare(b.Anchor, a.Anchor) })
		for i, f := range all {
			keep := max(most/len(all), 1)
			if i >= most {
				keep = 0
			}
			list = append(list, surplus{f, keep})
		}
	}
	return list
}

// maxDone returns how many done tasks of a kind stay in a queue; 0 is no limit.
func (r Retentions) maxDone(kind string) int {
	if h := r.Handlers[kind]; h != nil {
		return h.Retention.MaxDone
	}
	return r.Others.MaxDone
}

// limited reports whether the number of done tasks of any kind is limited.
func (r Retentions) limited() bool {
	for kind := range r.Handlers {
		if r.maxDone(kind) > 0 {
			return true
		}
	}
	return r.Others.MaxDone > 0
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
