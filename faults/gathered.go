package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/falldue/falldue/many"
)

const (
	gatheredName = "gathered"
	// One job in gatheredEvery runs in a batch of up to mostGathered, in runs that have limited jobs, too.
	gatheredEvery, mostGathered = 7, 5
)

func (w *worker) batches() many.Config[Job] {
	return many.Config[Job]{Most: min(mostGathered, w.Handlers), Wait: 20 * time.Millisecond}
}

// gathered runs a batch of jobs. Each has an outcome of its own, unless the batch panics.
func (w *worker) gathered(ctx context.Context, b *many.Batch[Job]) error {
	plans, longest := make([]plan, len(b.Tasks)), plan{}
	for i, t := range b.Tasks {
		w.write(Started, t, "")
		if plans[i] = planFor(w.Seed, t.Args, t.Fence, w.Longest); plans[i].after > longest.after {
			longest = plans[i]
		}
	}
	longest.work(ctx)
	panics := plans[0].panics
	for i, t := range b.Tasks {
		if err := t.SetResult(t.Fence); err != nil {
			return err
		}
		if plans[i].panics = false; panics {
			plans[i] = plan{outcome: OutcomeFailed}
		}
		b.Errs[i] = w.end(b.Context(i), t, plans[i])
	}
	if panics {
		clear(b.Errs)
		panic(fmt.Errorf("a batch of %d panics on purpose", len(b.Tasks)))
	}
	return nil
}
