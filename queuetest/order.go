package queuetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var orderCases = []conformanceCase{
	{"tasks with a lower priority number run first, and within a lane the task that has waited longest", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{Concurrency: 1}), falldue.NewKind[noteArgs]("ordered", falldue.KindConfig{})
		ran := make(chan string, 100)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Args.Text
			return nil
		})
		var want []string
		now := time.Now()
		for _, p := range []int{5, -5, 1} {
			for i := range 6 {
				// The task enqueued first falls due last.
				enqueue(t, q, k, noteArgs{fmt.Sprintf("%d/%d", p, i)}, &falldue.EnqueueOptions{Priority: new(p), RunAt: now.Add(-time.Duration(i+10) * time.Hour)})
			}
		}
		for _, p := range []int{-5, 1, 5} {
			for i := 5; i >= 0; i-- {
				want = append(want, fmt.Sprintf("%d/%d", p, i))
			}
		}
		startWorker(t, q)
		for i, w := range want {
			if got := receive(t, ran, w); got != w {
				t.Fatalf("task number %d to run is %s, want %s", i, got, w)
			}
		}
	}},
	{"no two workers run the same attempt, and every task ends once", func(t *testing.T, f *fixture) {
		const tasks, workers = 600, 3
		k := falldue.NewKind[int]("contended", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 2")})
		type attempt struct {
			id    int64
			fence int64
		}
		var mu sync.Mutex
		seen := map[attempt]int{}
		done := make(chan struct{}, 2*tasks)
		q := f.queue(t, falldue.Config{})
		args := make([]int, tasks)
		for i := range args {
			args[i] = i
		}
		if _, err := k.EnqueueMany(t.Context(), q, args, nil); err != nil {
			t.Fatal(err)
		}
		for range workers {
			w := f.queueOn(t, f.open(t), falldue.Config{Concurrency: 20})
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
			startWorker(t, w)
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
	{"tasks of a kind without a handler are left for workers that have one", func(t *testing.T, f *fixture) {
		known := falldue.NewKind[noteArgs]("known", falldue.KindConfig{})
		unknown := falldue.NewKind[noteArgs]("unknown", falldue.KindConfig{Priority: -1})
		q := f.queue(t, falldue.Config{})
		ran := make(chan string, 2)
		falldue.Handle(q, known, func(context.Context, falldue.Task[noteArgs]) error { ran <- "known"; return nil })
		waits := enqueue(t, q, unknown, noteArgs{})
		enqueue(t, q, known, noteArgs{})
		startWorker(t, q)
		receive(t, ran, "the known kind")
		if info := readTask(t, q, waits); info.Attempts != 0 || info.Fence != 0 || info.State != falldue.Open {
			t.Errorf("the task of the unknown kind was changed: %+v", info)
		}
		other := f.queueOn(t, f.open(t), falldue.Config{})
		falldue.Handle(other, unknown, func(context.Context, falldue.Task[noteArgs]) error { ran <- "unknown"; return nil })
		startWorker(t, other)
		if got := receive(t, ran, "the other kind"); got != "unknown" {
			t.Errorf("ran %s", got)
		}
	}},
	{"a worker runs only the tasks of its own queues", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[noteArgs]("queued", falldue.KindConfig{})
		q := f.queue(t, falldue.Config{Queues: map[string]falldue.QueueConfig{"mine": {Concurrency: 2}, "ours": {Concurrency: 1}}})
		ran := make(chan string, 3)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error { ran <- task.Queue; return nil })
		theirs := enqueue(t, q, k, noteArgs{}, &falldue.EnqueueOptions{Queue: "theirs", Priority: new(-9)})
		enqueue(t, q, k, noteArgs{}, &falldue.EnqueueOptions{Queue: "mine"})
		enqueue(t, q, k, noteArgs{}, &falldue.EnqueueOptions{Queue: "ours"})
		startWorker(t, q)
		got := map[string]bool{receive(t, ran, "a task"): true, receive(t, ran, "another task"): true}
		if !got["mine"] || !got["ours"] {
			t.Errorf("ran %v", got)
		}
		if info := readTask(t, q, theirs); info.Fence != 0 {
			t.Errorf("a task of another queue was claimed: %+v", info)
		}
	}},
}
