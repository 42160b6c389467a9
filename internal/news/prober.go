// Package news tells the pollers of a worker about tasks that other processes have stored. A prober polls for such
// tasks, and a listener receives notifications of them.
package news

import (
	"context"
	"maps"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Prober is the role that finds the tasks of other processes soon after their commit, by their IDs,
// which ascend. It probes often while such tasks come. It probes seldom when none have come for long, or
// while the worker listens and most tasks come with a notification. There are no probes while the worker
// has enough tasks, or while all connections of the pool are in use.
//
// A probe may miss a task that was committed after a task with a greater ID. A sweep finds such tasks.
// IDs may decrease, for example when a backup is restored. A probe that reads a smaller greatest ID than
// before continues from the smaller ID.
//
// The probes of an idle worker also read whether there are changes, and replace reads of changes.
//
// Where IDs do not ascend, a probe requests sweeps. Sweeps cost more, so an idle worker makes fewer.
type Prober struct {
	byID         bool // IDs ascend
	pollInterval time.Duration
	table        newsTable
	changes      *control.ChangeReader
	pollers      pollers
	demand       demand
	listener     listener

	idle       bool           // no task has come for so long that the next probe first reads the greatest ID
	asleep     bool           // no task has come for asleepAfter
	failed     bool           // the last probe failed, so that the next one first reads the greatest ID
	probedAt   time.Time      // when the greatest ID was last read
	highWaters []highWater    // the recent greatest IDs, the oldest first; none before the first probe
	seen       map[int64]bool // tasks with greater IDs than the first of highWaters
	arrival    time.Time      // when a probe last found a task that its pollers did not know
}

// pollers are the pollers of a worker.
type pollers interface {
	// Hint announces a task in a lane of a queue, which falls due after wait. It reports whether this
	// worker runs such tasks.
	Hint(queue string, at store.Lane, wait time.Duration) bool
	// Waiting reports whether a poller waits for tasks.
	Waiting() bool
	// ClaimedAt returns when a poller last claimed a task, and SweptAt when the last sweep ended.
	ClaimedAt() time.Time
	SweptAt() time.Time
	// SweepNow makes all pollers sweep soon.
	SweepNow()
	// Sleep makes the pollers sweep seldom, or no longer.
	Sleep(asleep bool)
	// Answered wakes the pollers that pause after a failure.
	Answered()
}

type demand interface {
	wanted() bool
}

// waitingWorker wants a probe if the worker waits for tasks and a connection is free.
type waitingWorker struct {
	pollers pollers
	table   interface{ Busy() bool }
}

func (w waitingWorker) wanted() bool { return w.pollers.Waiting() && !w.table.Busy() }

// listener knows whether the worker is notified of tasks.
type listener interface {
	Listening() bool
}

// newsTable has the statements of a prober.
type newsTable interface {
	News(ctx context.Context, back time.Duration) (store.News, error)
	NewTasks(ctx context.Context, after int64, limit int) ([]store.NewTask, error)
}

// highWater is the greatest known ID at a time.
type highWater struct {
	at time.Time
	id int64
}

const (
	// minProbePause is the shortest pause between two probes.
	minProbePause = 12 * time.Millisecond
	// The pause between two probes is the time since tasks of another process last came,
	// divided by quietFactor.
	quietFactor = 40
	// probePauseFactor limits probes to a fifth of the time. Most of the time of a probe is the round
	// trip to the server.
	probePauseFactor = 4
	// asleepAfter is how long after the last task, of any process, a worker falls
	// asleep: it probes and sweeps seldom. It stays awake for tasks that come every ten
	// minutes, as periodic ones often do.
	asleepAfter = 11 * time.Minute
	// maxBusy is how long probes may be left out. After a longer time, a sweep finds the tasks
	// that have come.
	maxBusy = time.Second
	// probeTimeLimit is the longest time for a probe.
	probeTimeLimit = 5 * time.Second
	// idMargin is how long probes still search for IDs below a greatest ID that they have
	// found, since tasks are not committed in the order of their IDs.
	idMargin = 100 * time.Millisecond
	// probePage is the greatest number of tasks that one statement reads, and
	// maxProbePages how many pages a probe reads before it leaves the rest to a sweep.
	probePage, maxProbePages = 100, 5
)

// probedTable is a newsTable that knows whether a connection is free.
type probedTable interface {
	newsTable
	// Busy reports whether all connections are in use.
	Busy() bool
}

// NewProber returns a prober. byID reports whether IDs ascend.
func NewProber(table probedTable, byID bool, pollInterval time.Duration, changes *control.ChangeReader, pollers pollers, listener listener) *Prober {
	return &Prober{
		byID: byID, pollInterval: pollInterval, table: table, changes: changes, pollers: pollers,
		demand: waitingWorker{pollers, table}, listener: listener,
	}
}

// Work probes until ctx ends.
func (p *Prober) Work(ctx context.Context) {
	p.arrival = time.Now()
	var cost time.Duration
	for failures := 0; p.wait(ctx, probePauseFactor*cost) == nil; {
		if !p.demand.wanted() {
			if n := len(p.highWaters); n > 0 && time.Since(p.highWaters[n-1].at) > maxBusy {
				p.highWaters = nil
			}
			continue
		}
		start := time.Now()
		if err := p.probe(ctx); err != nil { // sweeps report the error
			p.failed = true // the next answer may come from another server, with smaller IDs
			_ = retry.Pause(ctx, retry.ErrorPause(failures))
			failures++
			continue
		}
		if failures > 0 {
			p.pollers.Answered()
		}
		failures, cost = 0, time.Since(start)
	}
}

// wait waits until the next probe, at least for a time.
func (p *Prober) wait(ctx context.Context, least time.Duration) error {
	longest := p.longest()
	arrival := p.arrival
	if !p.byID { // only the pollers know of tasks
		arrival = p.lastTask()
	}
	length := min(max(time.Since(arrival)/quietFactor, minProbePause), longest)
	if p.listener.Listening() {
		length = longest
	}
	p.idle, p.asleep = length == longest, time.Since(p.lastTask()) > asleepAfter
	p.pollers.Sleep(p.asleep && time.Since(p.probedAt) < 2*control.MaxProbePause)
	if p.asleep {
		return retry.Pause(ctx, max(control.MaxProbePause, least))
	}
	if err := retry.Pause(ctx, max(length, least)); err != nil || !p.idle {
		return err
	}
	if since := time.Since(p.pollers.SweptAt()); since < longest {
		return retry.Pause(ctx, longest-since) // that sweep found the tasks that a probe would find
	}
	return nil
}

// longest returns the longest pause of a worker that is awake.
func (p *Prober) longest() time.Duration {
	share := p.pollInterval * 35 / 100
	if !p.byID {
		share = p.pollInterval / 2
	}
	return max(min(share, control.MaxProbePause), minProbePause)
}

// lastTask returns when a poller last claimed a task, or a probe last found one.
func (p *Prober) lastTask() time.Time {
	if claimed := p.pollers.ClaimedAt(); claimed.After(p.arrival) {
		return claimed
	}
	return p.arrival
}

// probe notifies the pollers of the tasks that have come since the last probe.
func (p *Prober) probe(ctx context.Context) error {
	if !p.byID {
		if !p.asleep {
			p.pollers.SweepNow()
		}
		return nil
	}
	ctx, cancel := retry.StatementContext(ctx, probeTimeLimit)
	defer cancel()
	if p.highWaters == nil {
		return p.begin(ctx)
	}
	for len(p.highWaters) > 1 && time.Since(p.highWaters[1].at) > idMargin {
		p.highWaters = p.highWaters[1:]
	}
	first, last := p.highWaters[0].id, p.highWaters[len(p.highWaters)-1].id
	maps.DeleteFunc(p.seen, func(id int64, _ bool) bool { return id <= first })
	at := time.Now()
	if p.idle || p.failed {
		newest, err := p.readNewest(ctx)
		if err != nil {
			return err
		}
		p.failed = false
		if newest <= first {
			// Tasks are deleted when they are done, so that the greatest ID is often
			// smaller than before. All tasks with greater IDs from now on are new.
			p.highWaters, p.seen = []highWater{{at, newest}}, map[int64]bool{}
			return nil
		}
	}
	for range maxProbePages {
		tasks, err := p.table.NewTasks(ctx, first, probePage)
		if err != nil {
			return err
		}
		p.found(tasks)
		if len(tasks) > 0 {
			first = tasks[len(tasks)-1].ID
		}
		if last = max(last, first); len(tasks) < probePage {
			p.highWaters = append(p.highWaters, highWater{at, last})
			return nil
		}
	}
	p.arrival = at
	return p.begin(ctx)
}

// begin makes the next probe find the tasks that come from now on, and leaves earlier tasks to a sweep.
func (p *Prober) begin(ctx context.Context) error {
	at := time.Now()
	newest, err := p.readNewest(ctx)
	if err == nil {
		p.highWaters, p.seen = []highWater{{at, newest}}, map[int64]bool{}
		p.pollers.SweepNow()
	}
	return err
}

// readNewest returns the greatest ID of a task. It also reads whether there are new changes, for their reader.
func (p *Prober) readNewest(ctx context.Context) (int64, error) {
	at := time.Now()
	news, err := p.table.News(ctx, control.ChangesMargin)
	if err == nil {
		p.probedAt = at
		p.changes.Probed(at, news.Changes)
	}
	return news.Task, err
}

// found notifies the pollers of tasks that no probe has found before and no worker has claimed yet.
func (p *Prober) found(tasks []store.NewTask) {
	for _, t := range tasks {
		waits := t.State == statements.StateOpen || t.State == statements.StateSnoozed
		if p.seen[t.ID] || !waits || t.Attempts > 0 {
			continue
		}
		p.seen[t.ID] = true
		if p.pollers.Hint(t.Queue, t.Lane, store.Duration(t.Anchor-t.Now)) {
			p.arrival = time.Now()
		}
	}
}
