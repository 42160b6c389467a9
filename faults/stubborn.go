package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue"
)

const (
	stubbornName = "stubborn"
	// One job in stubbornEvery is stubborn, in runs that have limited jobs, too.
	stubbornEvery = 17
	// stubbornTimeout ends the context of a stubborn job. A worker gives up a handler that continues for
	// stuckTimeout after the end of its context.
	stubbornTimeout, stuckTimeout = 200 * time.Millisecond, time.Second
)

// stubborn runs a job that ends itself together with an effect. Half of its runs ignore the end of their context.
// Half of these never return, so that the tasks of the run end only if such handlers give up their slots.
// The others end later, and settle as if they were in time.
func (w *worker) stubborn(ctx context.Context, t falldue.Task[Job]) error {
	p := w.begin(ctx, t)
	dice := rand.New(rand.NewPCG(w.Seed, uint64(t.ID)<<16+uint64(t.Fence))) //nolint:gosec // IDs are positive
	if dice.IntN(2) == 0 {
		return w.complete(ctx, t, p)
	}
	late := time.Duration(1<<62 - 1)
	if dice.IntN(2) == 0 {
		late = stubbornTimeout + stuckTimeout/2 + span(dice, stuckTimeout)
	}
	timer := time.NewTimer(late)
	defer timer.Stop()
	select {
	case <-timer.C:
		return w.complete(context.WithoutCancel(ctx), t, p)
	case <-w.ended:
		return errors.New("the process ends")
	}
}

// onStuck records a handler that was given up, before its worker settles the task.
func (w *worker) onStuck(run falldue.RunInfo, err error) error {
	w.history.Write(Event{What: GivenUp, Key: outcomeNone, ID: run.ID, Fence: run.Fence, Attempt: run.Attempt})
	return err
}

// giveUp notes the runs that were given up, by the IDs of their tasks. Whatever their handlers
// did later, they have failed, unless they had committed the end of their task.
func giveUp(lives map[string]*life, events []Event) {
	byID := map[int64]*life{}
	for _, l := range lives {
		for _, r := range l.rows {
			byID[r.ID] = l
		}
	}
	for _, e := range events {
		l := byID[e.ID]
		if l == nil {
			continue // it was deleted
		}
		e.Outcome = OutcomeFailed
		if l.rows[0].Transactional {
			e.Outcome = OutcomeUnsure
		}
		l.ended[e.Fence] = e
	}
}
