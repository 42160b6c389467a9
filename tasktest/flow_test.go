package tasktest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

func TestDrainRunsAFlowInItsOrder(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q := newQueue(t, testdb.Open(t, engine), falldue.Config{})
		steps := falldue.NewKind[int]("step", falldue.KindConfig{})
		var order []int
		falldue.Handle(q, steps, func(_ context.Context, task falldue.Task[int]) error {
			if order = append(order, task.Args); task.Args == 2 {
				return falldue.Discard(errDown)
			}
			return nil
		})
		var g flow.Flow
		a := g.Add(steps.Params(1, falldue.EnqueueOptions{Priority: new(int)}))
		b := g.Add(steps.Params(2, falldue.EnqueueOptions{Priority: new(int)}), flow.After(a))
		g.Add(steps.Params(3), flow.After(b))
		g.Add(steps.Params(4), flow.After(b), flow.RunAnyway())
		if _, err := g.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if n := len(tasktest.All(t, q, steps)); n != 4 {
			t.Errorf("%d tasks are enqueued, want 4", n)
		}
		tasktest.Drain(t, q)
		if want := []int{1, 2, 4}; !slices.Equal(order, want) {
			t.Errorf("ran %v, want %v", order, want)
		}
	})
}

// TestAdvanceDeletesTasksWhoseRetentionIsOver, and cancels what ran after them.
func TestAdvanceDeletesTasksWhoseRetentionIsOver(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{DeadRetention: time.Hour})
		steps := falldue.NewKind[int]("step", falldue.KindConfig{})
		var ran []int
		falldue.Handle(q, steps, func(_ context.Context, task falldue.Task[int]) error {
			if ran = append(ran, task.Args); task.Args == 1 {
				return falldue.Discard(errDown)
			}
			return nil
		})
		var g flow.Flow
		first := g.Add(steps.Params(1))
		second := g.Add(steps.Params(2), flow.After(first))
		g.Add(steps.Params(3), flow.After(second), flow.RunAnyway())
		ids, err := g.Enqueue(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		clock.Advance(t, q, 30*time.Minute)
		if info, err := q.Task(t.Context(), ids[first.Index()]); err != nil || info.State != falldue.StateDead {
			t.Errorf("after half an hour the first task is %s (error %v), want dead", info.State, err)
		}
		clock.Advance(t, q, time.Hour)
		if info, err := q.Task(t.Context(), ids[first.Index()]); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("when its retention is over, the first task is %s (error %v)", info.State, err)
		}
		if info, err := q.Task(t.Context(), ids[second.Index()]); err != nil || info.State != falldue.StateCancelled || !slices.Equal(ran, []int{1, 3}) {
			t.Errorf("the second task is %s (error %v), and %v ran; want it to be cancelled, and the third to have run", info.State, err, ran)
		}
	})
}
