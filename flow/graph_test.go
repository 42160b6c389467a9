package flow_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// TestGraph: it has the tasks before and after a task, those that are deleted too, and at most so many.
func TestGraph(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db)
		f := flow.Batch()
		first := f.Add(renderPage.Params(1))
		left, right := f.Add(renderPage.Params(2), flow.After(first)), f.Add(renderPage.Params(3), flow.After(first))
		f.Add(alert.Params(""), flow.After(left, right))
		ids, err := f.Enqueue(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		other, err := renderPage.Enqueue(t.Context(), q, 9)
		if err != nil {
			t.Fatal(err)
		}
		clock.Advance(t, q, 0)
		edges := []flow.Edge{{Before: ids[0], After: ids[1]}, {Before: ids[0], After: ids[2]}, {Before: ids[1], After: ids[3]}, {Before: ids[2], After: ids[3]}}
		for _, id := range ids {
			g, err := flow.GraphOf(t.Context(), q, id, 100)
			if err != nil || !slices.Equal(g.Edges, edges) || len(g.Tasks) != 4 || g.More {
				t.Fatalf("around task %d the graph is %+v, error %v", id, g, err)
			}
			for i, state := range []falldue.State{falldue.StateOpen, falldue.StateBlocked, falldue.StateBlocked, falldue.StateBlocked} {
				if g.Tasks[i].ID != ids[i] || g.Tasks[i].State != state || g.Tasks[i].Kind == "" {
					t.Errorf("task %d of the graph is %+v, want %s", i, g.Tasks[i], state)
				}
			}
		}
		if g, err := flow.GraphOf(t.Context(), q, ids[3], 2); err != nil || len(g.Tasks) != 2 || len(g.Edges) != 1 || !g.More {
			t.Errorf("with a bound of 2 the graph is %+v, error %v", g, err)
		}
		if g, err := flow.GraphOf(t.Context(), q, other.ID, 10); err != nil || len(g.Tasks) != 1 || len(g.Edges) != 0 || g.More {
			t.Errorf("around a task without a flow the graph is %+v, error %v", g, err)
		}
		if err := q.Delete(t.Context(), ids[0], falldue.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if g, err := flow.GraphOf(t.Context(), q, ids[3], 10); err != nil || len(g.Tasks) != 4 || g.Tasks[0] != (flow.Task{ID: ids[0], State: flow.Deleted}) || g.Edges[0].Ended != flow.Deleted {
			t.Errorf("with a deleted task the graph is %+v, error %v", g, err)
		}
		if _, err := flow.GraphOf(t.Context(), q, ids[0], 10); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("around a deleted task: error %v", err)
		}
		if _, err := flow.GraphOf(t.Context(), q, ids[3], 501); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("with a bound of 501: error %v", err)
		}
	})
}
