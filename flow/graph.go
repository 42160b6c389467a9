package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

// Graph contains the tasks of a flow around one task, and their dependencies.
type Graph struct {
	Tasks []Task // in the order of their IDs
	Edges []Edge // in the order of Before, then After
	// More reports whether the flow has more tasks than these.
	More bool
}

// Task is a task of a [Graph].
type Task struct {
	ID int64
	// Kind is "" if the task's row is deleted. State is then the last known state, or [Deleted].
	Kind  string
	State falldue.State
}

// Edge means that task After runs after task Before.
type Edge struct {
	Before, After int64
	// Ended is the state in which task Before ended, as the flow knows it: [falldue.StateDone],
	// [falldue.StateDead], [falldue.StateCancelled] or [Deleted]. It is "" while Before has not ended.
	Ended falldue.State
}

// The limits of a [Graph].
const (
	GraphMost  = 500 // tasks
	graphSteps = 40  // distance of a task from the task of the call; each step costs two statements
)

// GraphOf returns the tasks of the flow of a task: up to most tasks, 1 to [GraphMost], the nearest first and at most 40
// dependencies away. When the row of a task is deleted, the flow forgets the dependencies of that task. The graph of a
// task without a flow is the task itself. The error wraps [falldue.ErrNotFound] if there is no such task.
func GraphOf(ctx context.Context, q *falldue.Queue, id int64, most int) (Graph, error) {
	if most < 1 || most > GraphMost {
		return Graph{}, fmt.Errorf("%w: most is %d: must be 1 to %d", falldue.ErrInvalid, most, GraphMost)
	}
	s := hooks.StoreOf(q)
	root, err := s.Task(ctx, id)
	if err != nil {
		return Graph{}, fmt.Errorf("read the flow of task %d: %w", id, err)
	}
	b := graphBuilder{most: most, tasks: map[int64]Task{id: {id, root.Kind, falldue.State(root.State)}}, edges: map[[2]int64]Edge{}}
	frontier := []int64{id}
	for range graphSteps {
		if frontier, err = b.grow(ctx, s, frontier); err != nil {
			return Graph{}, fmt.Errorf("read the flow of task %d: %w", id, err)
		}
		if len(frontier) == 0 {
			break
		}
	}
	return b.graph(len(frontier) > 0), nil
}

// graphBuilder collects a graph.
type graphBuilder struct {
	most  int
	tasks map[int64]Task
	edges map[[2]int64]Edge
	more  bool
}

// grow adds what is next to tasks, and returns the tasks that are new.
func (b *graphBuilder) grow(ctx context.Context, s *store.Store, frontier []int64) (next []int64, err error) {
	for _, after := range []bool{false, true} {
		steps, err := s.Neighbors(ctx, frontier, after, 2*b.most)
		if err != nil {
			return nil, err
		}
		b.more = b.more || len(steps) == 2*b.most
		for _, step := range steps {
			id := step.Member
			if after {
				id = step.Waiter
			}
			if _, known := b.tasks[id]; !known {
				if len(b.tasks) == b.most {
					b.more = true
					continue
				}
				b.tasks[id] = taskOf(id, step, after)
				next = append(next, id)
			}
			b.edges[[2]int64{step.Member, step.Waiter}] = Edge{step.Member, step.Waiter, falldue.State(step.Outcome)}
		}
	}
	return next, nil
}

// taskOf returns the task at the other end of an edge.
func taskOf(id int64, step store.Neighbor, after bool) Task {
	t := Task{id, step.Kind, falldue.State(step.State)}
	if t.State != "" {
		return t
	}
	if t.State = Deleted; !after {
		t.State = cmp.Or(falldue.State(step.Outcome), Deleted)
	}
	return t
}

func (b *graphBuilder) graph(more bool) Graph {
	g := Graph{More: b.more || more}
	for _, t := range b.tasks {
		g.Tasks = append(g.Tasks, t)
	}
	slices.SortFunc(g.Tasks, func(a, b Task) int { return cmp.Compare(a.ID, b.ID) })
	for _, e := range b.edges {
		g.Edges = append(g.Edges, e)
	}
	slices.SortFunc(g.Edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After)) })
	return g
}
