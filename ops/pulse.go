package ops

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Rate is how fast a worker works.
type Rate struct {
	// Done is how many tasks succeed in a second, and Failed how many attempts fail.
	Done, Failed float64
	// Known is false as long as there are not two announcements to compare.
	Known bool
}

// plus returns the rate of two workers together, leaving out an unknown one.
func (r Rate) plus(other Rate) Rate {
	return Rate{r.Done + other.Done, r.Failed + other.Failed, r.Known || other.Known}
}

// Rates knows the rates of workers between their last two announcements. The zero value knows
// none. It is not safe for concurrent use.
type Rates struct{ last map[string][2]Worker }

// Add takes a list of [Ops.Workers], and returns the rates of the workers of it that live,
// by their ids. Workers announce themselves every 15 seconds, so that a rate is known from the
// second list on that has another announcement of the worker than the first one.
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
	// At is the time of the database's clock.
	At time.Time
	// Workers are those that live.
	Workers []Worker
	// Rates are the rates of these workers, by their ids, and Rate the rate of all of them.
	Rates map[string]Rate
	Rate  Rate
	// Lost are the workers that ended without a word within the last hour.
	Lost []Worker
	// Queues are the queues that have tasks.
	Queues []Queue
	// Pauses and Overrides are those that are in effect, as [Ops.Pauses] and [Ops.Overrides] list
	// them.
	Pauses    []Pause
	Overrides []Override
	// Policies are the policies of kinds, with overrides applied.
	Policies Policies
}

// Running returns how many handlers run, as their workers have announced.
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

// Lanes returns how many lanes have tasks that wait or run, in all queues.
func (p Pulse) Lanes() (n int) {
	for _, q := range p.Queues {
		n += q.Lanes
	}
	return n
}

// First returns the queue whose first task falls due before the others'. It reports
// false if there is none, or none is known.
func (p Pulse) First() (first Queue, ok bool) {
	for _, q := range p.Queues {
		if !q.FirstDue.IsZero() && (!ok || q.FirstDue.Before(first.FirstDue)) {
			first, ok = q, true
		}
	}
	return first, ok
}

// Monitor reads the state of queues and workers time after time. It is safe for concurrent use.
type Monitor struct {
	o *Ops

	mu    sync.Mutex
	rates Rates
}

// NewMonitor returns a monitor, which knows no rates yet.
func (o *Ops) NewMonitor() *Monitor { return &Monitor{o: o} }

// Read returns the state now. It costs the same however many tasks wait. Rates are known once
// it has seen two announcements of a worker, which are 15 seconds apart.
func (m *Monitor) Read(ctx context.Context) (Pulse, error) {
	now, err := m.o.snapshot(ctx)
	if err := cmp.Or(err, now.unread); err != nil {
		return Pulse{}, err
	}
	m.mu.Lock()
	p := Pulse{Rates: m.rates.Add(now.workers), Pauses: now.pauses, Overrides: now.overrides, Policies: now.Policies}
	m.mu.Unlock()
	for _, w := range now.workers {
		if w.Live() {
			p.Workers, p.Rate = append(p.Workers, w), p.Rate.plus(p.Rates[w.ID])
		} else {
			p.Lost = append(p.Lost, w)
		}
	}
	names, err := m.o.store.Queues(ctx)
	if err != nil {
		return Pulse{}, err
	}
	if p.Queues, err = m.o.waitingIn(ctx, names, now); err != nil {
		return Pulse{}, err
	}
	p.At, err = m.o.Now(ctx)
	return p, err
}
