package tasktest_test

import (
	"context"
	"slices"
	"testing"

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
		a := g.Add(steps.Params(1, &falldue.EnqueueOptions{Priority: new(int)}))
		b := g.Add(steps.Params(2, &falldue.EnqueueOptions{Priority: new(int)}), flow.After(a))
		g.Add(steps.Params(3, nil), flow.After(b))
		g.Add(steps.Params(4, nil), flow.After(b), flow.RunAnyway())
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
