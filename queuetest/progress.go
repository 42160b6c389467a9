package queuetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

// waitForProgress waits until a task has come as far as want.
func waitForProgress(t *testing.T, q *falldue.Queue, id int64, want float64) falldue.Progress {
	t.Helper()
	for pause := newPause(); ; {
		p, err := q.Progress(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if p.Fraction == want {
			return p
		}
		if !pause.next() {
			t.Fatalf("waited %v for task %d to come as far as %v; it reports %+v", waitTimeout, id, want, p)
		}
	}
}

var progressCases = []conformanceCase{
	{"progress can be read while a task runs, stays with a task that is kept, and goes with one that is deleted", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		kept := falldue.NewKind[noteArgs]("kept", falldue.KindConfig{DoneRetention: time.Hour, Policy: parsePolicy(t, "delay 0")})
		gone := falldue.NewKind[noteArgs]("gone", falldue.KindConfig{})
		next := make(chan struct{})
		handle := func(_ context.Context, task falldue.Task[noteArgs]) error {
			task.Progress(0.25, "a quarter – \"¼\"")
			<-next
			task.Progress(0.5, "half")
			task.Progress(7, "all")
			if task.Attempt == 1 && task.Kind == "kept" {
				return errFlaky
			}
			return nil
		}
		falldue.Handle(q, kept, handle)
		falldue.Handle(q, gone, handle)
		startWorker(t, q)
		id := enqueue(t, q, kept, noteArgs{})
		if p, err := q.Progress(t.Context(), id+1); !errors.Is(err, falldue.ErrNotFound) || p != (falldue.Progress{}) {
			t.Errorf("the progress of no task is %+v (error %v)", p, err)
		}
		if p := waitForProgress(t, q, id, 0.25); p.Message != "a quarter – \"¼\"" || p.Fence != 1 || p.UpdatedAt.Before(readTask(t, q, id).CreatedAt) {
			t.Errorf("the progress of the running task is %+v", p)
		}
		next <- struct{}{}
		if p := waitForProgress(t, q, id, 1); p.Message != "all" || p.Fence != 1 {
			t.Errorf("the progress of the failed run is %+v", p)
		}
		next <- struct{}{}
		waitForState(t, q, id, falldue.StateDone)
		if p := waitForProgress(t, q, id, 1); p.Fence != 2 {
			t.Errorf("the progress of the kept task is %+v", p)
		}
		id = enqueue(t, q, gone, noteArgs{})
		waitForProgress(t, q, id, 0.25)
		next <- struct{}{}
		waitForDeletion(t, q, id)
		if p, err := q.Progress(t.Context(), id); !errors.Is(err, falldue.ErrNotFound) || p != (falldue.Progress{}) {
			t.Errorf("of the deleted task the progress %+v is left (error %v)", p, err)
		}
	}},
	{"a run that has lost its task cannot report progress", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[bool]("reports", falldue.KindConfig{})
		lost, reported, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[bool]) error {
			task.Progress(0.1, "begun")
			if task.Args { // ignores the end of its context
				<-lost
				task.Progress(0.9, "of a run that has lost its task")
				close(reported)
			} else {
				<-reported
				task.Progress(0.5, "written at the same time, or later")
			}
			<-end
			return nil
		})
		startWorker(t, q)
		cancelled, other := enqueue(t, q, k, true), enqueue(t, q, k, false)
		waitForProgress(t, q, cancelled, 0.1)
		waitForProgress(t, q, other, 0.1)
		if err := q.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		close(lost)
		waitForProgress(t, q, other, 0.5)
		check := func() {
			if p, err := q.Progress(t.Context(), cancelled); err != nil || p.Message != "begun" {
				t.Errorf("the cancelled task reports %+v (error %v)", p, err)
			}
		}
		check()
		close(end)
		waitForDeletion(t, q, other)
		check() // nor by its settlement
	}},
	{"a worker that lost its lease cannot write over the progress of the run that follows", func(t *testing.T, f *fixture) {
		// The first worker's two handlers are busy, so that the second one claims the task again.
		first, second := f.queueOn(t, f.open(t), falldue.Config{Concurrency: 2, ShutdownTimeout: -1}), f.queue(t, falldue.Config{ShutdownTimeout: -1})
		k := falldue.NewKind[bool]("reports", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		lost := make(chan struct{})
		falldue.Handle(first, k, func(ctx context.Context, task falldue.Task[bool]) error {
			task.Progress(0.1, "begun")
			<-lost
			if task.Args {
				task.Progress(0.9, "of a run that has lost its lease")
			} else {
				task.Progress(0.5, "written at the same time, or later")
			}
			<-ctx.Done()
			return nil
		})
		falldue.Handle(second, k, func(ctx context.Context, task falldue.Task[bool]) error {
			task.Progress(0.2, "again")
			<-ctx.Done()
			return nil
		})
		stop := startWorker(t, first)
		id, other := enqueue(t, first, k, true), enqueue(t, first, k, false)
		waitForProgress(t, first, id, 0.1)
		waitForProgress(t, first, other, 0.1)
		f.endLeases(t, fmt.Sprintf("id = %d", id))
		startWorker(t, second)
		if p := waitForProgress(t, second, id, 0.2); p.Fence != 2 {
			t.Errorf("the second run reports %+v", p)
		}
		close(lost)
		waitForProgress(t, second, other, 0.5)
		check := func() {
			t.Helper()
			if p, err := second.Progress(t.Context(), id); err != nil || p.Fraction != 0.2 || p.Fence != 2 {
				t.Errorf("after the report of the lost run the progress is %+v (error %v)", p, err)
			}
		}
		check()
		stop()
		check() // nor by its settlement
	}},
	{"results are read by their type", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("doubles", falldue.KindConfig{DoneRetention: time.Hour})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[int]) error {
			if task.Args < 0 {
				return falldue.Discard(task.SetResult(noteArgs{Text: "of a task that failed"}))
			}
			return task.SetResult(noteArgs{Text: "ü"})
		})
		done, dead := enqueue(t, q, k, 1), enqueue(t, q, k, -1)
		if _, err := falldue.ResultOf[noteArgs](t.Context(), q, done); !errors.Is(err, falldue.ErrNoResult) {
			t.Errorf("before the task ran: %v", err)
		}
		startWorker(t, q)
		waitForState(t, q, done, falldue.StateDone)
		waitForState(t, q, dead, falldue.StateDead)
		if r, err := falldue.ResultOf[noteArgs](t.Context(), q, done); err != nil || r.Text != "ü" {
			t.Errorf("the result is %+v (error %v)", r, err)
		}
		if _, err := falldue.ResultOf[int](t.Context(), q, done); err == nil || errors.Is(err, falldue.ErrNoResult) {
			t.Errorf("the result as a number: %v", err)
		}
		if _, err := falldue.ResultOf[noteArgs](t.Context(), q, dead); !errors.Is(err, falldue.ErrNoResult) {
			t.Errorf("of a dead task: %v", err)
		}
		if _, err := falldue.ResultOf[noteArgs](t.Context(), q, dead+1); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("of no task: %v", err)
		}
	}},
}
