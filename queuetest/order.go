package queuetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
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
				enqueue(t, q, k, noteArgs{fmt.Sprintf("%d/%d", p, i)}, falldue.EnqueueOptions{Priority: new(p), RunAt: now.Add(-time.Duration(i+10) * time.Hour)})
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
		if _, err := k.EnqueueMany(t.Context(), q, args); err != nil {
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
		if info := readTask(t, q, waits); info.Attempts != 0 || info.Fence != 0 || info.State != falldue.StateOpen {
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
		theirs := enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Queue: "theirs", Priority: new(-9)})
		enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Queue: "mine"})
		enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Queue: "ours"})
		startWorker(t, q)
		got := map[string]bool{receive(t, ran, "a task"): true, receive(t, ran, "another task"): true}
		if !got["mine"] || !got["ours"] {
			t.Errorf("ran %v", got)
		}
		if info := readTask(t, q, theirs); info.Fence != 0 {
			t.Errorf("a task of another queue was claimed: %+v", info)
		}
	}},
	{"Overdue lists the tasks of all queues that have been due for more than a minute, and no others", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		kind := func(name string) falldue.Kind[noteArgs] {
			return falldue.NewKind[noteArgs](name, falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")})
		}
		long := time.Now().Add(-10 * time.Minute).Truncate(time.Millisecond)
		past := func(o falldue.EnqueueOptions) falldue.EnqueueOptions {
			o.RunAt = long
			return o
		}
		running, failed, unhandled := kind("running"), kind("failed"), kind("unhandled")
		started, release := make(chan struct{}, 1), make(chan struct{})
		defer close(release)
		falldue.Handle(q, running, func(context.Context, falldue.Task[noteArgs]) error { started <- struct{}{}; <-release; return nil })
		falldue.Handle(q, failed, func(context.Context, falldue.Task[noteArgs]) error { return errFlaky })
		enqueue(t, q, running, noteArgs{}, past(falldue.EnqueueOptions{}))
		id := enqueue(t, q, failed, noteArgs{}, past(falldue.EnqueueOptions{}))
		startWorker(t, q)
		receive(t, started, "a task to run")
		waitFor(t, q, id, "waiting again", func(i falldue.TaskInfo) bool { return i.Attempts == 1 && i.ClaimedBy == "" })

		enqueue(t, q, kind("new"), noteArgs{})
		enqueue(t, q, kind("later"), noteArgs{}, falldue.EnqueueOptions{Delay: time.Hour})
		enqueue(t, q, unhandled, noteArgs{})
		enqueue(t, q, unhandled, noteArgs{}, past(falldue.EnqueueOptions{}))
		enqueue(t, q, unhandled, noteArgs{}, past(falldue.EnqueueOptions{Priority: new(7)}))
		enqueue(t, q, unhandled, noteArgs{}, past(falldue.EnqueueOptions{Queue: "elsewhere"}))
		if _, err := kind("many").EnqueueMany(t.Context(), q, make([]noteArgs, 1001), past(falldue.EnqueueOptions{Queue: "elsewhere-too"})); err != nil {
			t.Fatal(err)
		}
		got, err := ops.New(q).Overdue(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []ops.Overdue{
			{Queue: "default", Kind: "unhandled", Tasks: 2, DueSince: long},
			{Queue: "elsewhere", Kind: "unhandled", Tasks: 1, DueSince: long},
			{Queue: "elsewhere-too", Kind: "many", Tasks: 1000, More: true, DueSince: long},
		}
		if !slices.EqualFunc(got, want, func(a, b ops.Overdue) bool {
			same := a.DueSince.Equal(b.DueSince)
			a.DueSince = b.DueSince
			return same && a == b
		}) {
			t.Errorf("overdue are %v, want %v", got, want)
		}
	}},
}
