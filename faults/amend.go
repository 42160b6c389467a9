package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

const (
	amendedName = "amended"
	// One enqueue in amendEvery is of a job that waits, or changes one of the last keptAmended of these, in
	// runs that have limited jobs, too.
	amendEvery  = 8
	keptAmended = 3
)

// amendable is a job whose arguments, time and priority its enqueuer changes.
type amendable struct {
	job Job
	id  int64
}

// amend enqueues a job that waits for a moment, or changes such a job. It may run already, and then the
// change is refused.
func (e *enqueuer) amend(ctx context.Context) error {
	wait := span(e.dice, 2*time.Second)
	if len(e.amendable) < keptAmended || e.dice.IntN(4) == 0 {
		e.made++
		job := Job{Key: keyOf(e.Name, e.made)}
		receipt, err := e.kinds.amended.Enqueue(ctx, e.queue, job, falldue.EnqueueOptions{Delay: wait})
		if err != nil {
			return err
		}
		e.write(Acknowledged, []string{job.Key}, []int64{receipt.ID})
		e.amendable = append(e.amendable, amendable{job, receipt.ID})
		e.amendable = e.amendable[max(len(e.amendable)-keptAmended, 0):]
		return nil
	}
	one := &e.amendable[e.dice.IntN(len(e.amendable))]
	t, err := e.queue.Task(ctx, one.id)
	if err != nil {
		return err
	}
	one.job.Version++
	to := ops.TaskChange{Args: one.job}
	if e.dice.IntN(2) == 0 {
		to.Fence = &t.Fence
	}
	if e.dice.IntN(2) == 0 {
		to.RunAt = t.Now.Add(wait)
	}
	if priority := e.dice.IntN(3) - 1; priority != 0 {
		to.Priority = &priority
	}
	event := Event{What: Amending, Key: one.job.Key, ID: one.id, Attempt: one.job.Version}
	e.history.Write(event)
	err = ops.New(e.queue).ChangeTask(ctx, one.id, to)
	switch {
	case err == nil:
		event.What = Amended
	case errors.Is(err, falldue.ErrRunning), errors.Is(err, falldue.ErrWrongState):
		event.What = Refused
	default:
		return err // the change may have been made
	}
	e.history.Write(event)
	return nil
}

// amended runs a job, and records which arguments the run has. Many runs take so long that changes meet them.
func (w *worker) amended(ctx context.Context, t falldue.Task[Job]) error {
	w.history.Write(Event{What: Saw, Key: t.Args.Key, ID: t.ID, Fence: t.Fence, Attempt: t.Args.Version})
	plan{after: time.Duration(t.ID%4) * 100 * time.Millisecond}.work(ctx)
	return w.plain(ctx, t)
}

// amendedWrongly returns the tasks that have lost a change, and those with a change that was refused.
func amendedWrongly(lives map[string]*life) (list []finding) {
	for key, l := range lives {
		if len(l.rows) != 1 || l.rows[0].Kind != amendedName {
			continue
		}
		r, seen := l.rows[0], []int{l.rows[0].Version}
		last := 0 // the last change that was made
		for _, e := range l.amendments {
			switch e.What {
			case Saw:
				seen = append(seen, e.Attempt)
				if e.Fence == r.Fence && e.Attempt != r.Version {
					list = append(list, finding{key, fmt.Sprintf("its last run had version %d of its arguments, and it has version %d", e.Attempt, r.Version)})
				}
			case Amended:
				last = max(last, e.Attempt)
			}
		}
		if r.Version < last {
			list = append(list, finding{key, fmt.Sprintf("it has version %d of its arguments, and was changed to version %d", r.Version, last)})
		}
		for _, e := range l.amendments {
			if e.What == Refused && slices.Contains(seen, e.Attempt) {
				list = append(list, finding{key, fmt.Sprintf("it has had version %d of its arguments, a change that was refused", e.Attempt)})
			}
		}
	}
	return list
}
