package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Flow is a graph of tasks to enqueue. The zero value is an empty Flow. A Flow has no cycles, since a task can only run
// after tasks that were added before it. A Flow can be enqueued several times, which makes new tasks each time. It is
// not safe for concurrent use, and a Flow with tasks must not be copied.
type Flow struct {
	params []falldue.EnqueueParams
	flow   store.Flow
	err    error
}

// queue is what a flow uses of a *falldue.Queue, in addition to its store.
type queue interface {
	EnqueueFlow(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams, flow store.Flow) ([]int64, error)
}

// Node is a task of a [Flow].
type Node struct {
	flow  *Flow
	index int
}

// Index returns the index of the task in the IDs that [Flow.Enqueue] returns.
func (n Node) Index() int { return n.index }

// Option is a setting of a task that runs after other tasks.
type Option func(*options)

type options struct {
	after  []Node
	on     statements.OnDeath
	deaths int // how many options say what happens at a death
}

func onDeath(on statements.OnDeath) Option {
	return func(o *options) { o.on, o.deaths = on, o.deaths+1 }
}

// After makes a task run after other tasks of the flow.
func After(nodes ...Node) Option { return func(o *options) { o.after = append(o.after, nodes...) } }

// CancelOnDeath cancels a task as soon as a dependency is dead, cancelled or deleted. For tasks that run after the
// cancelled task, their own options decide. Without CancelOnDeath, [RunAnyway] or [AtFirstDeath], a task stays blocked
// until the dead dependency has been retried and is done, and is cancelled if the dependency is deleted. Set at most
// one of the three options.
func CancelOnDeath() Option { return onDeath(statements.DeathCancel) }

// RunAnyway makes a task run when all its dependencies have ended, whatever their outcomes.
func RunAnyway() Option { return onDeath(statements.DeathRun) }

// AtFirstDeath makes a task run as soon as one of the tasks named by [After] is dead. The task is cancelled when all of
// these tasks have ended and none is dead. If After names no tasks, the task is cancelled within 15 seconds.
func AtFirstDeath() Option { return onDeath(statements.DeathFirst) }

// Batch returns a flow of tasks that run in any order, independently.
func Batch(tasks ...falldue.EnqueueParams) *Flow {
	f := &Flow{}
	for _, t := range tasks {
		f.Add(t)
	}
	return f
}

// Chain returns a flow in which each task runs after the one before it.
func Chain(tasks ...falldue.EnqueueParams) *Flow {
	f := &Flow{}
	for i, t := range tasks {
		if i == 0 {
			f.Add(t)
		} else {
			f.Add(t, After(Node{f, i - 1}))
		}
	}
	return f
}

// Add adds a task. Without [After], the task depends on no other task. With [AtFirstDeath] but without After, the task
// never runs. [Flow.Enqueue] reports mistakes.
func (f *Flow) Add(task falldue.EnqueueParams, opts ...Option) Node {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	n := len(f.params)
	f.params = append(f.params, task)
	if o.deaths > 1 {
		f.refuse("task %d, %s, has %d options for failed dependencies: set only one of CancelOnDeath, RunAnyway and AtFirstDeath", n, task.Kind(), o.deaths)
	}
	members := map[int]bool{}
	for _, m := range o.after {
		if m.flow != f {
			f.refuse("task %d, %s, runs after a task of another flow: After takes only tasks that were added to the same flow", n, task.Kind())
			break
		}
		members[m.index] = true
	}
	for _, m := range slices.Sorted(maps.Keys(members)) {
		f.flow.Edges = append(f.flow.Edges, store.FlowEdge{Member: m, Waiter: n})
	}
	if len(o.after) > 0 || o.on == statements.DeathFirst { // an empty batch holds nothing up, and has no death
		if f.flow.Waiters == nil {
			f.flow.Waiters = map[int]statements.OnDeath{}
		}
		f.flow.Waiters[n] = o.on
	}
	return Node{f, n}
}

// refuse notes the first mistake.
func (f *Flow) refuse(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: "+format, append([]any{falldue.ErrInvalid}, args...)...)
	}
}

// Then adds a task that runs after the last tasks of the flow, which are the tasks after which no other task runs yet.
// Tasks with [AtFirstDeath] do not count. Then returns f.
func (f *Flow) Then(task falldue.EnqueueParams, opts ...Option) *Flow {
	f.Add(task, slices.Concat(opts, []Option{After(f.ends()...)})...)
	return f
}

// OnFirstDeath adds a task that runs as soon as one of the last tasks of the flow is dead ([AtFirstDeath]). [Flow.Then]
// explains which tasks are the last. Call OnFirstDeath before Then. OnFirstDeath returns f.
func (f *Flow) OnFirstDeath(task falldue.EnqueueParams) *Flow {
	if ends := f.ends(); len(ends) > 0 {
		f.Add(task, After(ends...), AtFirstDeath())
	}
	return f
}

// ends returns the tasks after which none runs, except at the first death.
func (f *Flow) ends() (list []Node) {
	inner := map[int]bool{}
	for _, e := range f.flow.Edges {
		if f.flow.Waiters[e.Waiter] != statements.DeathFirst {
			inner[e.Member] = true
		}
	}
	for i := range f.params {
		if !inner[i] && f.flow.Waiters[i] != statements.DeathFirst { // the zero value is another
			list = append(list, Node{f, i})
		}
	}
	return list
}

// Enqueue stores all tasks in its own transaction, and returns their IDs in the order in which they were added. Errors
// are as for [falldue.Kind.Enqueue]. The error also wraps [falldue.ErrInvalid] for a task that runs after a task of
// another flow, has two of the options CancelOnDeath, RunAnyway and AtFirstDeath, or has EnqueueOptions.Unique.
func (f *Flow) Enqueue(ctx context.Context, q *falldue.Queue) ([]int64, error) {
	return f.enqueue(ctx, q, nil)
}

// EnqueueTx is like [Flow.Enqueue] but stores the tasks inside tx, as [falldue.Kind.EnqueueTx] does. After an error,
// roll tx back: otherwise some tasks of the flow may be stored without their dependencies.
func (f *Flow) EnqueueTx(ctx context.Context, q *falldue.Queue, tx falldue.Tx) ([]int64, error) {
	if tx == nil {
		return nil, fmt.Errorf("%w: the transaction is nil", falldue.ErrInvalid)
	}
	return f.enqueue(ctx, q, tx)
}

func (f *Flow) enqueue(ctx context.Context, q *falldue.Queue, tx falldue.Tx) ([]int64, error) {
	if f.err != nil {
		return nil, f.err
	}
	return hooks.Of[queue](q).EnqueueFlow(ctx, tx, f.params, store.Flow{Waiters: maps.Clone(f.flow.Waiters), Edges: f.flow.Edges})
}

// AddSibling adds tasks to the batch of a running task. The handler of that task calls AddSibling with the task's ID.
// Tasks that run after the running task then run after the new tasks, too. AddSibling returns the IDs of the new tasks.
// The error wraps [falldue.ErrNotFound] if nothing runs after the running task, or if that task has ended.
func AddSibling(ctx context.Context, q *falldue.Queue, id int64, tasks ...falldue.EnqueueParams) ([]int64, error) {
	return addSiblings(ctx, q, nil, id, tasks)
}

// AddSiblingTx is like [AddSibling] but stores the tasks inside tx. The running task cannot end before tx does: commit
// tx or roll it back before the handler returns.
func AddSiblingTx(ctx context.Context, q *falldue.Queue, tx falldue.Tx, id int64, tasks ...falldue.EnqueueParams) ([]int64, error) {
	if tx == nil {
		return nil, fmt.Errorf("%w: the transaction is nil", falldue.ErrInvalid)
	}
	return addSiblings(ctx, q, tx, id, tasks)
}

func addSiblings(ctx context.Context, q *falldue.Queue, tx falldue.Tx, id int64, tasks []falldue.EnqueueParams) ([]int64, error) {
	if id == 0 { // of a Task that no worker runs; to the store it is none
		return nil, store.Missing("falldue: no task waits for task 0, which no worker runs")
	}
	return hooks.Of[queue](q).EnqueueFlow(ctx, tx, tasks, store.Flow{Sibling: id})
}
