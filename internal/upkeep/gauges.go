package upkeep

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Gauges measures all tasks: how many there are in each state, and for how long the first due one of
// each queue and kind has waited. Tasks of paused lanes and of lanes whose policy is unknown are not due.
type Gauges struct {
	counter   counter
	tables    overdue.Tables
	handlers  map[string]*run.Handler // by kind
	pauses    pauses
	perTask   *control.TaskPolicies
	overrides *control.Overrides
}

// counter estimates how many tasks there are of each queue, kind and state.
type counter interface {
	EstimateCounts(ctx context.Context) ([]store.Count, error)
}

// NewGauges returns the gauges of a worker's tables.
func NewGauges(counter counter, tables overdue.Tables, handlers map[string]*run.Handler, pauses pauses, perTask *control.TaskPolicies, overrides *control.Overrides) *Gauges {
	return &Gauges{counter: counter, tables: tables, handlers: handlers, pauses: pauses, perTask: perTask, overrides: overrides}
}

// Measure measures all tasks. Only one goroutine may call it.
func (g *Gauges) Measure(ctx context.Context) ([]store.Gauge, error) {
	counts, err := g.counts(ctx)
	if err != nil {
		return nil, err
	}
	found := map[pair]*store.Gauge{}
	of := func(queue, kind string) *store.Gauge {
		at := pair{queue, kind}
		if found[at] == nil {
			found[at] = &store.Gauge{Queue: queue, Kind: kind, Tasks: map[string]int64{}}
		}
		return found[at]
	}
	for _, c := range counts {
		of(c.Queue, c.Kind).Tasks[c.State] += c.Tasks
	}
	queues, err := g.tables.Queues(ctx)
	if err != nil {
		return nil, err
	}
	heads, err := g.tables.Heads(ctx, queues)
	if err != nil {
		return nil, err
	}
	for queue, list := range heads {
		for _, h := range list {
			delay, known := g.delay(queue, h)
			if late := store.Duration(h.Now-h.Anchor) - delay; known && late > 0 {
				one := of(queue, h.Kind)
				one.OldestDue = max(one.OldestDue, late.Microseconds())
			}
		}
	}
	return fewest(slices.Collect(maps.Values(found))), nil
}

func (g *Gauges) counts(ctx context.Context) ([]store.Count, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.SweepTimeout)
	defer cancel()
	return g.counter.EstimateCounts(ctx)
}

// delay returns the delay of a lane, and false if the delay is unknown or does not matter.
func (g *Gauges) delay(queue string, h store.Head) (time.Duration, bool) {
	switch {
	case h.Corrupt != nil || h.Anchor < 0 || h.State == statements.StateBlocked || g.pauses.Paused(queue, h.Lane):
		return 0, false
	case !h.Delayed():
		return 0, true
	}
	var policy *control.CompiledPolicy
	if h.Policy != "" {
		policy = g.perTask.PolicyOf(queue, h.Lane, nil)
	} else if handler := g.handlers[h.Kind]; handler != nil {
		policy = handler.Policy
	}
	if policy == nil {
		return 0, false
	}
	return g.overrides.Current(queue, h.Lane, policy).DelayIn(h.Lane), true
}

// fewest returns the gauges of the kinds with the most tasks, and adds up the others of a queue as the kind "".
func fewest(all []*store.Gauge) (list []store.Gauge) {
	total := func(g *store.Gauge) (n int64) {
		for _, tasks := range g.Tasks {
			n += tasks
		}
		return n
	}
	slices.SortFunc(all, func(a, b *store.Gauge) int {
		return cmp.Or(cmp.Compare(total(b), total(a)), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind))
	})
	others := map[string]int{} // queue → index in list
	for i, g := range all {
		if i < mostPairs {
			list = append(list, *g)
			continue
		}
		at, ok := others[g.Queue]
		if !ok {
			at = len(list)
			others[g.Queue] = at
			list = append(list, store.Gauge{Queue: g.Queue, Tasks: map[string]int64{}})
		}
		for state, tasks := range g.Tasks {
			list[at].Tasks[state] += tasks
		}
		list[at].OldestDue = max(list[at].OldestDue, g.OldestDue)
	}
	return list
}
