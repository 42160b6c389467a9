package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/falldue/falldue"
)

const (
	repeatedName = "repeated"
	// One job in repeatedEvery runs again after it has succeeded, until it has succeeded repeats times, in runs
	// that have limited jobs, too.
	repeatedEvery = 16
	repeats       = 3
	// repeatAttempts is the number of failures after which such a job is dead.
	repeatAttempts = 2
	// OutcomeRepeated: the handler succeeded and asked for another run.
	OutcomeRepeated = "repeated"
)

// repeated runs a job that repeats itself while few claims of it have been made.
func (w *worker) repeated(ctx context.Context, t falldue.Task[Job]) error {
	p := w.begin(ctx, t)
	if p.outcome == OutcomeDone && t.Fence < 2*repeats {
		p.outcome = OutcomeRepeated
		w.write(Ended, t, p.outcome)
		return falldue.Again(time.Duration(t.Fence) * 10 * time.Millisecond)
	}
	if err := t.SetResult(t.Fence); err != nil {
		return err
	}
	return w.end(ctx, t, p)
}

// remembered returns why the failures before a repeat counted, or "". A repeat has no effect if the claim was lost.
func (c Checker) remembered(l *life, r Row) string {
	if r.Kind != repeatedName || r.State != "dead" || l.ended[r.Fence].Outcome == OutcomeDiscarded {
		return ""
	}
	recorded, repeat := map[int64]string{}, int64(0)
	for _, rec := range r.Records {
		recorded[rec.Fence] = rec.Outcome
	}
	for _, s := range l.started {
		if l.ended[s.Fence].Outcome == OutcomeRepeated && recorded[s.Fence] == "" && recorded[s.Fence+1] != "" {
			repeat = s.Fence
		}
	}
	if claims := r.Fence - repeat; repeat > 0 && claims < repeatAttempts {
		return fmt.Sprintf("it died %d claims after claim %d had repeated it, of %d", claims, repeat, repeatAttempts)
	}
	return ""
}

// maxAttempts is the number of failures after which the task of a row is dead.
func (c Checker) maxAttempts(r Row) int {
	if r.Kind == repeatedName {
		return repeatAttempts
	}
	return c.MaxAttempts
}
