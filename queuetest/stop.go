package queuetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var stopCases = []conformanceCase{
	{"a worker that stops finishes running tasks, gives back claimed tasks that have not started, and claims no more", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Concurrency: 1, DoneRetention: time.Hour})
		k := falldue.NewKind[int]("stopping", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")})
		started, release := make(chan int, 100), make(chan struct{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
			started <- task.Args
			<-release
			return ctx.Err()
		})
		receipts, err := k.EnqueueMany(t.Context(), q, []int{0, 1, 2, 3, 4})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		first := receive(t, started, "the first task")
		cancel()
		close(release)
		if err := receive(t, done, "Run to return"); err != nil {
			t.Errorf("Run returned %v", err)
		}
		for i, r := range receipts {
			info := readTask(t, q, r.ID)
			switch {
			case i == first && info.State != falldue.StateDone:
				t.Errorf("the task that ran is %+v", info)
			case i != first && (info.State != falldue.StateOpen || info.Attempts != 0 || info.ClaimedBy != ""):
				t.Errorf("a task that did not run is %+v", info)
			}
		}
		if n := len(started); n != 0 {
			t.Errorf("%d more tasks were started", n)
		}
	}},
	{"handlers that exceed the shutdown timeout are cancelled, and their tasks run again without losing an attempt", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{ShutdownTimeout: 10 * time.Millisecond})
		k := falldue.NewKind[noteArgs]("interrupted", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h; attempts 1")})
		started, causes := make(chan int, 10), make(chan error, 1)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			started <- task.Attempt
			if task.Fence > 1 {
				return nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		id := enqueue(t, q, k, noteArgs{})
		stop := startWorker(t, q)
		receive(t, started, "the handler to start")
		stop()
		if err := receive(t, causes, "the handler to be cancelled"); !errors.Is(err, falldue.ErrStopping) {
			t.Errorf("the cause is %v, want ErrStopping", err)
		}
		if info := readTask(t, q, id); info.State != falldue.StateSnoozed || info.Attempts != 0 || info.ClaimedBy != "" {
			t.Errorf("the interrupted task is %+v", info)
		}
		startWorker(t, q)
		if attempt := receive(t, started, "the task to run again"); attempt != 1 {
			t.Errorf("it runs as attempt %d, want 1", attempt)
		}
		waitForDeletion(t, q, id)
	}},
	{"too many stuck handlers end Run with an error, and OnStuck decides about their tasks", func(t *testing.T, f *fixture) {
		decided := make(chan error, 1)
		q := f.queue(t, falldue.Config{StuckTimeout: time.Millisecond, MaxStuck: -1, OnStuck: func(_ falldue.RunInfo, err error) error {
			decided <- err
			return falldue.Discard(err)
		}})
		k := falldue.NewKind[noteArgs]("stuck", falldue.KindConfig{Timeout: time.Millisecond})
		release, returned := make(chan struct{}), make(chan struct{})
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error {
			defer close(returned)
			<-release
			return nil
		})
		id := enqueue(t, q, k, noteArgs{})
		if err := q.Run(t.Context()); !errors.Is(err, falldue.ErrStuck) {
			t.Errorf("Run returned %v, want ErrStuck", err)
		}
		if err := receive(t, decided, "the call of OnStuck"); !errors.Is(err, falldue.ErrStuck) || !errors.Is(err, falldue.ErrTimeout) {
			t.Errorf("OnStuck decides about %v", err)
		}
		if info := readTask(t, q, id); info.State != falldue.StateDead {
			t.Errorf("the task is %+v, want it dead", info)
		}
		close(release)
		receive(t, returned, "the stuck handler to return")
	}},
	{"a queue can run again after it has stopped, but not twice at the same time", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("again", falldue.KindConfig{})
		ran := make(chan struct{}, 2)
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { ran <- struct{}{}; return nil })
		for range 2 {
			stop := startWorker(t, q)
			enqueue(t, q, k, noteArgs{})
			receive(t, ran, "a task to run")
			if err := q.Run(t.Context()); err == nil {
				t.Error("Run runs twice at the same time")
			}
			stop()
		}
	}},
}
