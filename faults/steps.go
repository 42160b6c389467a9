package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/steps"
)

const (
	steppedName = "stepped"
	// One job in steppedEvery has steps, in runs that have limited jobs, too.
	steppedEvery = 11
	// stepBatches is how many batches the step with a cursor writes, each with its cursor.
	stepBatches = 5
)

// The steps of a job, in their order. Each batch of the second one writes an effect, and so does the
// last one. Each effect has the number of its part: the batch, or stepBatches for the last step.
const (
	markStep  = "mark"
	loopStep  = "loop"
	writeStep = "write"
)

// stepped runs a job with steps, and records which steps ran and which the database has recorded.
func (w *worker) stepped(ctx context.Context, t falldue.Task[Job]) error {
	p := w.begin(ctx, t)
	if p.blind {
		ctx = context.WithoutCancel(ctx)
	}
	if err := w.inSteps(ctx, t, p); err != nil {
		p.panics, p.wait, p.outcome = false, 0, OutcomeFailed
		if errors.Is(err, falldue.ErrStopping) {
			p.outcome = OutcomeStopped
			w.write(Ended, t, p.outcome)
			return err
		}
		if errors.Is(err, steps.ErrChanged) || errors.Is(err, falldue.ErrInvalid) {
			w.write(Misread, t, "")
		}
		return errors.Join(err, w.end(ctx, t, p))
	}
	if err := t.SetResult(t.Fence); err != nil {
		return err
	}
	return w.end(ctx, t, p)
}

// inSteps runs the steps of a job, with pauses between their writes.
func (w *worker) inSteps(ctx context.Context, t falldue.Task[Job], p plan) error {
	pause := func() {
		select {
		case <-time.After(p.after / stepBatches):
		case <-ctx.Done():
		}
	}
	fence, err := steps.Do(ctx, t, markStep, func(context.Context) (int64, error) {
		w.write(StepRan, t, markStep)
		return t.Fence, nil
	})
	if err != nil {
		return err
	}
	w.write(StepDone, t, stepMark(markStep, fence))
	_, err = steps.DoFrom(ctx, t, loopStep, func(ctx context.Context, c *steps.Cursor[int]) (int, error) {
		w.write(StepRan, t, loopStep)
		w.write(Continued, t, strconv.Itoa(c.At()))
		for c.At() < stepBatches {
			err := w.inTransaction(ctx, func(tx *transaction) error {
				if _, err := tx.ExecContext(ctx, w.insert, t.ID, t.Fence, c.At()); err != nil {
					return err
				}
				return c.SaveTx(ctx, tx, c.At()+1)
			})
			if err != nil {
				return 0, err
			}
			w.write(Saved, t, strconv.Itoa(c.At()))
			if err := c.Stopping(); err != nil {
				return 0, err
			}
			pause()
		}
		return c.At(), nil
	})
	if err != nil {
		return err
	}
	w.write(StepDone, t, stepMark(loopStep, 0))
	fence, err = steps.DoTx(ctx, t, writeStep, func(ctx context.Context, record func(falldue.Tx, int64) error) error {
		w.write(StepRan, t, writeStep)
		return w.inTransaction(ctx, func(tx *transaction) error {
			if _, err := tx.ExecContext(ctx, w.insert, t.ID, t.Fence, stepBatches); err != nil {
				return err
			}
			return record(tx, t.Fence)
		})
	})
	if err == nil {
		w.write(StepDone, t, stepMark(writeStep, fence))
	}
	return err
}

// inTransaction calls fn in a transaction, and commits.
func (w *worker) inTransaction(ctx context.Context, fn func(*transaction) error) error {
	tx, err := begin(ctx, w.db)
	if err != nil {
		return err
	}
	defer tx.close()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// stepMark is the outcome of an event about a step that is done, with its result.
func stepMark(step string, result int64) string { return fmt.Sprint(step, "=", result) }

// Part is an effect of a job with steps.
type Part struct {
	Part  int
	Fence int64
}

// ranAgain describes a step that ran again after it was recorded, or a loop that began before its saved cursor.
// It returns "" if the history of a task has neither.
func ranAgain(l *life) string {
	done, saved := map[string]Event{}, Event{}
	for _, e := range l.steps { // by fence
		switch e.What {
		case StepRan:
			if before, ok := done[e.Outcome]; ok && before.Fence < e.Fence {
				return fmt.Sprintf("claim %d ran the step %s, which claim %d had recorded", e.Fence, e.Outcome, before.Fence)
			}
		case StepDone:
			step, _, _ := strings.Cut(e.Outcome, "=")
			if before, ok := done[step]; ok && before.Outcome != e.Outcome {
				return fmt.Sprintf("claim %d got the result %s of a step, and claim %d %s", before.Fence, before.Outcome, e.Fence, e.Outcome)
			}
			done[step] = e
		case Saved:
			saved = e
		case Continued:
			if saved.Fence < e.Fence && cursorOf(e) < cursorOf(saved) {
				return fmt.Sprintf("claim %d began at the cursor %s, and claim %d had saved %s", e.Fence, e.Outcome, saved.Fence, saved.Outcome)
			}
		case Misread:
			return fmt.Sprintf("claim %d could not read the steps before it", e.Fence)
		}
	}
	return ""
}

func cursorOf(e Event) int {
	n, _ := strconv.Atoi(e.Outcome)
	return n
}

// partsTwice returns a part of a task that was written twice, or "".
func partsTwice(r Row) string {
	for i, p := range r.Parts {
		if i > 0 && r.Parts[i-1].Part == p.Part {
			return fmt.Sprintf("its part %d was written twice, by claims %d and %d", p.Part, r.Parts[i-1].Fence, p.Fence)
		}
	}
	return ""
}

// staleParts finds parts that a claim wrote after a later one, that are missing, or without the record of
// their step.
func (c Checker) staleParts(l *life, r Row) string {
	if r.Kind != steppedName {
		return ""
	}
	last := int64(0)
	for i, p := range r.Parts {
		switch {
		case p.Part != i:
			return fmt.Sprintf("its part %d is missing, and part %d was written", i, p.Part)
		case p.Fence < last:
			return fmt.Sprintf("claim %d wrote part %d after claim %d had written the part before", p.Fence, p.Part, last)
		case p.Fence > r.Fence:
			return fmt.Sprintf("claim %d wrote part %d, and the last claim is %d", p.Fence, p.Part, r.Fence)
		}
		last = p.Fence
	}
	if r.State == "done" && len(r.Parts) != stepBatches+1 {
		return fmt.Sprintf("it is done with %d parts, and has %d", len(r.Parts), stepBatches+1)
	}
	saved, result := 0, ""
	for _, e := range l.steps {
		switch step, value, _ := strings.Cut(e.Outcome, "="); {
		case e.What == Saved:
			saved = max(saved, cursorOf(e))
		case e.What == StepDone && step == writeStep:
			result = value
		}
	}
	if saved > len(r.Parts) {
		return fmt.Sprintf("it has saved the cursor %d, and has %d parts", saved, len(r.Parts))
	}
	if result != "" && (len(r.Parts) <= stepBatches || strconv.FormatInt(r.Parts[stepBatches].Fence, 10) != result) {
		return fmt.Sprintf("claim %s has recorded its last step, and the parts are %v", result, r.Parts)
	}
	return ""
}

// sortSteps sorts the events of steps by claim. The events of one claim stay in their order.
func sortSteps(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.Fence - b.Fence) })
}
