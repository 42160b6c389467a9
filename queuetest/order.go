package queuetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var orderCases = []conformance{
	{"lower priorities run first, and within a lane who waits longest", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{Concurrency: 1}), falldue.NewKind[note]("ordered", falldue.KindConfig{})
		ran := make(chan string, 100)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[note]) error {
			ran <- task.Args.Text
			return nil
		})
		var want []string
		now := time.Now()
		for _, p := range []int{5, -5, 1} {
			for i := range 6 {
				// The first enqueued is the last to fall due.
				enqueue(t, q, k, note{fmt.Sprintf("%d/%d", p, i)}, &falldue.EnqueueOptions{Priority: new(p), RunAt: now.Add(-time.Duration(i+10) * time.Hour)})
			}
		}
		for _, p := range []int{-5, 1, 5} {
			for i := 5; i >= 0; i-- {
				want = append(want, fmt.Sprintf("%d/%d", p, i))
			}
		}
		work(t, q)
		for i, w := range want {
			if got := receive(t, ran, w); got != w {
				t.Fatalf("task %d to run is %s, want %s", i, got, w)
			}
		}
	}},
	{"no two workers run the same attempt, and every task ends once", func(t *testing.T, b *bench) {
		const tasks, workers = 600, 3
		k := falldue.NewKind[int]("contended", falldue.KindConfig{Policy: policy(t, "delay 0; attempts 2")})
		type attempt struct {
			id    int64
			fence int64
		}
		var mu sync.Mutex
		seen := map[attempt]int{}
		done := make(chan struct{}, 2*tasks)
		q := b.queue(t, falldue.Config{})
		args := make([]int, tasks)
		for i := range args {
			args[i] = i
		}
		if _, err := k.EnqueueMany(t.Context(), q, args, nil); err != nil {
			t.Fatal(err)
		}
		for range workers {
			w := b.queueOn(t, b.open(t), falldue.Config{Concurrency: 20})
			falldue.Handle(w, k, func(_ context.Context, task falldue.Task[int]) error {
				mu.Lock()
				seen[attempt{task.ID, task.Fence}]++
				mu.Unlock()
				if task.Args%10 == 0 && task.Attempt == 1 {
					return errFlaky
				}
				done <- struct{}{}
				return nil
			})
			work(t, w)
		}
		for range tasks {
			receive(t, done, "all tasks to be done")
		}
		mu.Lock()
		defer mu.Unlock()
		for a, n := range seen {
			if n != 1 {
				t.Errorf("task %d, claim %d, ran %d times", a.id, a.fence, n)
			}
		}
		if want := tasks + tasks/10; len(seen) != want {
			t.Errorf("%d attempts ran, want %d", len(seen), want)
		}
	}},
	{"tasks of an unknown kind are left for workers that know it", func(t *testing.T, b *bench) {
		known := falldue.NewKind[note]("known", falldue.KindConfig{})
		unknown := falldue.NewKind[note]("unknown", falldue.KindConfig{Priority: -1})
		q := b.queue(t, falldue.Config{})
		ran := make(chan string, 2)
		falldue.Handle(q, known, func(context.Context, falldue.Task[note]) error { ran <- "known"; return nil })
		waits := enqueue(t, q, unknown, note{})
		enqueue(t, q, known, note{})
		work(t, q)
		receive(t, ran, "the known kind")
		if info := task(t, q, waits); info.Attempts != 0 || info.Fence != 0 || info.State != falldue.Open {
			t.Errorf("the unknown kind's task was touched: %+v", info)
		}
		other := b.queueOn(t, b.open(t), falldue.Config{})
		falldue.Handle(other, unknown, func(context.Context, falldue.Task[note]) error { ran <- "unknown"; return nil })
		work(t, other)
		if got := receive(t, ran, "the other kind"); got != "unknown" {
			t.Errorf("ran %s", got)
		}
	}},
	{"a worker runs only the queues it is told to", func(t *testing.T, b *bench) {
		k := falldue.NewKind[note]("queued", falldue.KindConfig{})
		q := b.queue(t, falldue.Config{Queues: map[string]falldue.QueueConfig{"mine": {Concurrency: 2}, "ours": {Concurrency: 1}}})
		ran := make(chan string, 3)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[note]) error { ran <- task.Queue; return nil })
		theirs := enqueue(t, q, k, note{}, &falldue.EnqueueOptions{Queue: "theirs", Priority: new(-9)})
		enqueue(t, q, k, note{}, &falldue.EnqueueOptions{Queue: "mine"})
		enqueue(t, q, k, note{}, &falldue.EnqueueOptions{Queue: "ours"})
		work(t, q)
		got := map[string]bool{receive(t, ran, "a task"): true, receive(t, ran, "another task"): true}
		if !got["mine"] || !got["ours"] {
			t.Errorf("ran %v", got)
		}
		if info := task(t, q, theirs); info.Fence != 0 {
			t.Errorf("a task of another queue was claimed: %+v", info)
		}
	}},
}
