package queuetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var stopCases = []conformance{
	{"a worker told to stop finishes what runs, gives back what does not, and takes nothing more", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{Concurrency: 1, DoneRetention: time.Hour})
		k := falldue.NewKind[int]("stopping", falldue.KindConfig{Policy: policy(t, "delay 1h")})
		started, let := make(chan int, 100), make(chan struct{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
			started <- task.Args
			<-let
			return ctx.Err()
		})
		ids, err := k.EnqueueMany(t.Context(), q, []int{0, 1, 2, 3, 4}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		first := receive(t, started, "the first task")
		cancel()
		close(let)
		if err := receive(t, done, "Run to return"); err != nil {
			t.Errorf("Run returned %v", err)
		}
		for i, id := range ids {
			info := task(t, q, id)
			switch {
			case i == first && info.State != falldue.Done:
				t.Errorf("the task that ran is %+v", info)
			case i != first && (info.State != falldue.Open || info.Attempts != 0 || info.ClaimedBy != ""):
				t.Errorf("a task that did not run is %+v", info)
			}
		}
		if n := len(started); n != 0 {
			t.Errorf("%d more tasks were started", n)
		}
	}},
	{"handlers that outlast the grace period are cancelled, and their tasks run again without losing an attempt", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{ShutdownTimeout: 10 * time.Millisecond})
		k := falldue.NewKind[note]("interrupted", falldue.KindConfig{Policy: policy(t, "delay 1h; attempts 1")})
		started, causes := make(chan int, 10), make(chan error, 1)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[note]) error {
			started <- task.Attempt
			if task.Fence > 1 {
				return nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		id := enqueue(t, q, k, note{})
		stop := work(t, q)
		receive(t, started, "the handler to start")
		stop()
		if err := receive(t, causes, "the handler to be cancelled"); !errors.Is(err, falldue.ErrStopping) {
			t.Errorf("the cause is %v, want ErrStopping", err)
		}
		if info := task(t, q, id); info.State != falldue.Snoozed || info.Attempts != 0 || info.ClaimedBy != "" {
			t.Errorf("the interrupted task is %+v", info)
		}
		work(t, q)
		if attempt := receive(t, started, "the task to run again"); attempt != 1 {
			t.Errorf("it runs as attempt %d, want 1", attempt)
		}
		untilGone(t, q, id)
	}},
	{"a queue can run again after it was stopped, but not twice at once", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{})
		k := falldue.NewKind[note]("again", falldue.KindConfig{})
		ran := make(chan struct{}, 2)
		falldue.Handle(q, k, func(context.Context, falldue.Task[note]) error { ran <- struct{}{}; return nil })
		for range 2 {
			stop := work(t, q)
			enqueue(t, q, k, note{})
			receive(t, ran, "a task to run")
			if err := q.Run(t.Context()); err == nil {
				t.Error("Run runs twice at once")
			}
			stop()
		}
	}},
}
