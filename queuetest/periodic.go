package queuetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/periodic"
)

var periodicCases = []conformanceCase{
	{"any number of processes enqueue one task for each tick of a schedule", func(t *testing.T, f *fixture) {
		const processes, ticks = 4, 3
		kind := falldue.NewKind[string]("tick", falldue.KindConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		var q *falldue.Queue
		for range processes {
			q = f.queueOn(t, f.open(t), falldue.Config{})
			s, err := periodic.New(q, periodic.Schedule{Name: "each-second", Spec: "@every 1s", Missed: periodic.All(1000), Task: kind.Params("", nil)})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if err := s.Run(ctx); err != nil {
					t.Errorf("run: %v", err)
				}
			})
		}
		deadline, look := time.Now().Add(waitTimeout), time.NewTicker(20*time.Millisecond)
		defer look.Stop()
		for len(tasksOf(t, q, kind.Name())) < ticks {
			if time.Now().After(deadline) {
				t.Fatalf("waited %v for the tasks of %d ticks", waitTimeout, ticks)
			}
			<-look.C
		}
		cancel()
		all.Wait()
		tasks := tasksOf(t, q, kind.Name())
		list, err := periodic.List(t.Context(), q)
		if err != nil || len(list) != 1 {
			t.Fatalf("the schedules are %v (error %v), want one", list, err)
		}
		if last := tasks[len(tasks)-1].ID; list[0].LastTask != last {
			t.Errorf("the last task is %d, want %d", list[0].LastTask, last)
		}
		// The last tick was a second before the next one, and each tick has one task.
		for i, task := range tasks {
			tick := list[0].Next.Add(-time.Duration(len(tasks)-i) * time.Second)
			if task.CreatedAt.Before(tick) {
				t.Errorf("task %d of %d was enqueued at %v, before its tick at %v: a tick has two tasks", i+1, len(tasks), task.CreatedAt, tick)
			}
		}
	}},
}

// tasksOf returns the tasks of a kind.
func tasksOf(t *testing.T, q *falldue.Queue, kind string) []falldue.TaskInfo {
	t.Helper()
	list, err := q.Tasks(t.Context(), falldue.TaskFilter{Kind: kind, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
