package ops

import (
	"cmp"
	"context"
	"time"

	"github.com/falldue/falldue/internal/overdue"
)

// Rate is the speed of a worker.
type Rate struct {
	// Done is how many tasks succeed per second, and Failed is how many attempts fail per second.
	Done, Failed float64
	// Known is false until the worker has sent two heartbeats.
	Known bool
}

// plus returns the rate of two workers together, leaving out an unknown one.
func (r Rate) plus(other Rate) Rate {
	return Rate{r.Done + other.Done, r.Failed + other.Failed, r.Known || other.Known}
}

// Rates computes the rates of workers from their last two heartbeats. The zero value knows no rates. It is not safe for
// concurrent use.
type Rates struct{ last map[string][2]Worker }

// Add takes a list of [Ops.Workers], and returns the rates of its live workers, by their IDs. Workers send a
// heartbeat every 15 seconds. The rate of a worker is known from the first list with its second heartbeat.
func (r *Rates) Add(workers []Worker) map[string]Rate {
	last, rates := map[string][2]Worker{}, map[string]Rate{}
	for _, w := range workers {
		if !w.Live() {
			continue
		}
		two := r.last[w.ID]
		if !two[1].Seen.Equal(w.Seen) {
			two = [2]Worker{two[1], w}
		}
		last[w.ID], rates[w.ID] = two, rateBetween(two[0], two[1])
	}
	r.last = last
	return rates
}

// rateBetween returns the rate of a worker between two heartbeats. The first one may
// be missing.
func rateBetween(before, after Worker) Rate {
	took := after.Seen.Sub(before.Seen).Seconds()
	if before.ID == "" || took <= 0 {
		return Rate{}
	}
	return Rate{float64(after.Done-before.Done) / took, float64(after.Failed-before.Failed) / took, true}
}

// Pulse is the state of queues and workers at a moment.
type Pulse struct {
	// At is when the state was read, by the database's clock.
	At time.Time
	// Workers are the live workers.
	Workers []Worker
	// Rates are the rates of these workers, by their IDs, and Rate is the sum of these rates.
	Rates map[string]Rate
	Rate  Rate
	// Lost are the workers that vanished within the last hour.
	Lost []Worker
	// Queues are the queues that have tasks. More reports whether there are lanes that the [Monitor] has not read yet.
	// LanesAge is the age of the oldest data about the lanes that the monitor has read.
	Queues   []Queue
	More     bool
	LanesAge time.Duration
	// Pauses and Overrides are the pauses and overrides in effect, as [Ops.Pauses] and [Ops.Overrides] list them.
	Pauses    []Pause
	Overrides []Override
	// Policies are the policies of kinds, with overrides applied.
	Policies Policies
}

// Running returns how many handlers run, according to the last heartbeats.
func (p Pulse) Running() (n int) {
	for _, w := range p.Workers {
		n += w.Running
	}
	return n
}

// Concurrency returns how many handlers may run concurrently.
func (p Pulse) Concurrency() (n int) {
	for _, w := range p.Workers {
		n += w.Concurrency()
	}
	return n
}

// Lanes returns how many lanes of all queues have tasks that wait or run, as far as the monitor has read them.
func (p Pulse) Lanes() (n int) {
	for _, q := range p.Queues {
		n += q.Lanes
	}
	return n
}

// First returns the queue with the task that falls due first. It returns false if no queue has a task with a known due
// time.
func (p Pulse) First() (first Queue, ok bool) {
	for _, q := range p.Queues {
		if !q.FirstDue.IsZero() && (!ok || q.FirstDue.Before(first.FirstDue)) {
			first, ok = q, true
		}
	}
	return first, ok
}

// Monitor reads the state of queues and workers repeatedly. It is safe for concurrent use. A monitor reads 5,000
// lanes at a time, and remembers the state of all other lanes from their last read. The package comment defines lanes.
type Monitor struct {
	o              *Ops
	most           bound // of a read
	failuresWithin time.Duration
	turn           chan struct{} // for what follows

	rates  Rates
	survey *survey
	now    snapshot // of the last read
	readAt time.Time
}

const (
	// rereadAge is the age of the last read of a monitor from which Overdue and Failures read lanes again.
	rereadAge = 10 * time.Second
	// delayedLanes is the number of lanes whose overdue tasks a monitor counts.
	delayedLanes = 200
	// shortFailures is about how long a monitor reads failed tasks.
	shortFailures = 400 * time.Millisecond
)

// NewMonitor returns a monitor that has not read anything yet.
func (o *Ops) NewMonitor() *Monitor {
	return &Monitor{o: o, most: shortRead, failuresWithin: shortFailures, turn: make(chan struct{}, 1), survey: o.newSurvey()}
}

// begin waits for the turn of the caller.
func (m *Monitor) begin(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Monitor) end() { <-m.turn }

// read reads the next lanes.
func (m *Monitor) read(ctx context.Context) (err error) {
	m.readAt = time.Now()
	if m.now, err = m.o.snapshot(ctx); err != nil {
		return err
	}
	return m.survey.read(ctx, m.now, m.most)
}

// readIfOld reads the next lanes, unless they are many and some were read a moment ago.
func (m *Monitor) readIfOld(ctx context.Context) error {
	if many := m.survey.next != 0 || len(m.survey.parts) > 1; many && time.Since(m.readAt) < rereadAge {
		return nil
	}
	return m.read(ctx)
}

// Read returns the state now. The cost depends neither on the number of waiting tasks nor on the number of lanes: each
// Read reads the next 5,000 lanes. The rate of a worker is known after two of its heartbeats, which are 15 seconds
// apart.
func (m *Monitor) Read(ctx context.Context) (Pulse, error) {
	if err := m.begin(ctx); err != nil {
		return Pulse{}, err
	}
	defer m.end()
	if err := m.read(ctx); err != nil {
		return Pulse{}, cmp.Or(m.now.unread, err)
	}
	now := m.now
	if now.unread != nil {
		return Pulse{}, now.unread
	}
	p := Pulse{Rates: m.rates.Add(now.workers), Pauses: now.pauses, Overrides: now.overrides, Policies: now.Policies}
	p.Queues, p.More, p.LanesAge = m.survey.list(), !m.survey.whole, m.survey.age()
	for _, w := range now.workers {
		if w.Live() {
			p.Workers, p.Rate = append(p.Workers, w), p.Rate.plus(p.Rates[w.ID])
		} else {
			p.Lost = append(p.Lost, w)
		}
	}
	var err error
	p.At, err = m.o.Now(ctx)
	return p, err
}

// Overdue is like [Ops.Overdue] for the lanes that the monitor knows. If more than 200 lanes have overdue tasks, it
// counts the tasks in the lanes that were due first, and sets [Overdue].More.
func (m *Monitor) Overdue(ctx context.Context, olderThan time.Duration) ([]Overdue, error) {
	if err := checkOlderThan(olderThan); err != nil {
		return nil, err
	}
	finder := overdue.Finder{Tables: overdue.In(m.o.store), OlderThan: cmp.Or(olderThan, overdue.After)}
	lanes, cut, now, err := m.dueLanes(ctx, finder.OlderThan)
	if err != nil {
		return nil, err
	}
	list, err := now.countOverdue(ctx, finder, lanes)
	for i, o := range list {
		list[i].More = o.More || cut[QueueKind{Queue: o.Queue, Kind: o.Kind}]
	}
	return list, err
}

func (m *Monitor) dueLanes(ctx context.Context, olderThan time.Duration) (lanes []overdue.Lane, cut map[QueueKind]bool, now snapshot, err error) {
	if err := m.begin(ctx); err != nil {
		return nil, nil, now, err
	}
	defer m.end()
	err = m.readIfOld(ctx)
	lanes, cut = m.survey.overdue(olderThan, delayedLanes)
	return lanes, cut, m.now, err
}

// Failures is like [Ops.Failures] for the lanes that the monitor knows, and takes little more than a second.
func (m *Monitor) Failures(ctx context.Context) (Failures, error) {
	lanes, more, err := m.failedLanes(ctx)
	if err != nil {
		return Failures{}, err
	}
	return m.o.failures(ctx, lanes, more, m.failuresWithin)
}

func (m *Monitor) failedLanes(ctx context.Context) (lanes []failedLane, more bool, err error) {
	if err := m.begin(ctx); err != nil {
		return nil, false, err
	}
	defer m.end()
	err = m.readIfOld(ctx)
	lanes, more = m.survey.failed(failureLanes)
	return lanes, more, err
}
