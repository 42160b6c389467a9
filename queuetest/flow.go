package queuetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/ops"
)

// flowRuns records the order in which tasks of a flow run, by their arguments.
type flowRuns struct {
	mu    sync.Mutex
	order []int
	ran   chan int
}

func (r *flowRuns) handle(q *falldue.Queue, k falldue.Kind[int], fn func(falldue.Task[int]) error) {
	falldue.Handle(q, k, func(_ context.Context, t falldue.Task[int]) error {
		err := fn(t)
		r.mu.Lock()
		r.order = append(r.order, t.Args)
		r.mu.Unlock()
		r.ran <- t.Args
		return err
	})
}

func newFlowRuns() *flowRuns { return &flowRuns{ran: make(chan int, 1000)} }

func succeed(falldue.Task[int]) error { return nil }

func enqueueFlow(t *testing.T, q *falldue.Queue, f *flow.Flow) []int64 {
	t.Helper()
	ids, err := f.Enqueue(t.Context(), q)
	if err != nil {
		t.Fatalf("enqueue the flow: %v", err)
	}
	return ids
}

var flowKind = falldue.NewKind[int]("flow.step", falldue.KindConfig{DoneRetention: time.Hour})

// step returns a task of a flow.
func step(n int) falldue.EnqueueParams { return flowKind.Params(n) }

func stepTasks(from, n int) (list []falldue.EnqueueParams) {
	for i := range n {
		list = append(list, step(from+i))
	}
	return list
}

var flowCases = []conformanceCase{
	{"the callback of a batch runs once, after all of the batch", func(t *testing.T, f *fixture) {
		const n = 50
		q, other := f.queue(t, falldue.Config{}), f.queueOn(t, f.open(t), falldue.Config{})
		runs := newFlowRuns()
		runs.handle(q, flowKind, succeed)
		runs.handle(other, flowKind, succeed)
		ids := enqueueFlow(t, q, flow.Batch(stepTasks(0, n)...).Then(step(n)))
		if info, err := q.Task(t.Context(), ids[n]); err != nil || info.State != falldue.StateBlocked {
			t.Fatalf("before the batch the callback is %q (error %v), want blocked", info.State, err)
		}
		startWorker(t, q)
		startWorker(t, other)
		for range n + 1 {
			receive(t, runs.ran, "a run")
		}
		if last := runs.order[n]; last != n {
			t.Errorf("the last to run is %d, want the callback, %d", last, n)
		}
		waitForState(t, q, ids[n], falldue.StateDone)
		if c, err := flow.CountsOf(t.Context(), q, ids[n]); err != nil || c != (flow.Counts{Done: n}) {
			t.Errorf("the counts are %+v (error %v), want %d done", c, err, n)
		}
		if list, err := flow.Members(t.Context(), q, ids[n], falldue.StateDone, ids[n-3], 10); err != nil || !slices.Equal(list, ids[n-2:n]) {
			t.Errorf("the last members are %v (error %v), want %v", list, err, ids[n-2:n])
		}
	}},
	{"the callback of an empty batch runs immediately", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		runs.handle(q, flowKind, succeed)
		enqueueFlow(t, q, flow.Batch().Then(step(1)))
		startWorker(t, q)
		receive(t, runs.ran, "the callback to run")
	}},
	{"in random graphs each task runs once, after all before it", func(t *testing.T, f *fixture) {
		const n = 40
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		runs.handle(q, flowKind, succeed)
		var g flow.Flow
		var nodes []flow.Node
		before := map[int][]flow.Node{}
		for i := range n {
			for _, m := range nodes {
				if rand.IntN(8) == 0 {
					before[i] = append(before[i], m)
				}
			}
			nodes = append(nodes, g.Add(step(i), flow.After(before[i]...)))
		}
		enqueueFlow(t, q, &g)
		startWorker(t, q)
		at := map[int]int{}
		for i := range n {
			got := receive(t, runs.ran, "a run")
			if _, twice := at[got]; twice {
				t.Fatalf("%d ran twice", got)
			}
			for _, m := range before[got] {
				if _, ran := at[m.Index()]; !ran {
					t.Errorf("%d ran before %d, after which it was to run", got, m.Index())
				}
			}
			at[got] = i
		}
	}},
	{"what runs after a dead task waits, is cancelled, or runs, as was chosen", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		fail := true
		var mu sync.Mutex
		runs.handle(q, flowKind, func(task falldue.Task[int]) error {
			mu.Lock()
			defer mu.Unlock()
			if task.Args == 0 && fail {
				return falldue.Discard(errors.New("bad"))
			}
			return nil
		})
		var g flow.Flow
		dead := g.Add(step(0))
		g.Add(step(1), flow.After(dead))
		cancelled := g.Add(step(2), flow.After(dead), flow.CancelOnDeath())
		g.Add(step(3), flow.After(cancelled), flow.CancelOnDeath())
		g.Add(step(4), flow.After(dead), flow.RunAnyway())
		g.Add(step(5), flow.After(dead), flow.AtFirstDeath())
		ids := enqueueFlow(t, q, &g)
		startWorker(t, q)
		for i, want := range []falldue.State{falldue.StateDead, falldue.StateBlocked, falldue.StateCancelled, falldue.StateCancelled, falldue.StateDone, falldue.StateDone} {
			waitForState(t, q, ids[i], want)
		}
		for i, want := range map[int]string{2: "cancelled: a task before it is dead", 3: "cancelled: a task before it was cancelled"} {
			if info := readTask(t, q, ids[i]); info.LastError != want {
				t.Errorf("the reason of task %d is %q, want %q", i, info.LastError, want)
			}
		}
		if c, err := flow.CountsOf(t.Context(), q, ids[1]); err != nil || c != (flow.Counts{Dead: 1}) {
			t.Errorf("the counts are %+v (error %v), want one dead", c, err)
		}
		mu.Lock()
		fail = false
		mu.Unlock()
		if err := q.Retry(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		waitForState(t, q, ids[1], falldue.StateDone)
	}},
	{"no task waits for a deleted one", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		runs.handle(q, flowKind, succeed)
		var g flow.Flow
		gone := g.Add(flowKind.Params(0, falldue.EnqueueOptions{Delay: time.Hour}))
		g.Add(step(1), flow.After(gone))
		g.Add(step(2), flow.After(gone), flow.RunAnyway())
		ids := enqueueFlow(t, q, &g)
		if err := q.Delete(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		startWorker(t, q)
		waitForState(t, q, ids[1], falldue.StateCancelled)
		if info := readTask(t, q, ids[1]); info.LastError != "cancelled: a task before it was deleted" {
			t.Errorf("the reason is %q", info.LastError)
		}
		waitForState(t, q, ids[2], falldue.StateDone)
	}},
	{"a blocked task can be cancelled and deleted", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		ids := enqueueFlow(t, q, flow.Chain(stepTasks(0, 3)...))
		if err := q.Cancel(t.Context(), ids[1]); err != nil {
			t.Fatal(err)
		}
		waitForState(t, q, ids[1], falldue.StateCancelled)
		if err := q.Delete(t.Context(), ids[2]); err != nil {
			t.Fatal(err)
		}
	}},
	{"a running task adds siblings, and the callback runs after these, too", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		runs.handle(q, flowKind, func(task falldue.Task[int]) error {
			if task.Args != 0 {
				return nil
			}
			_, err := flow.AddSibling(t.Context(), q, task.ID, stepTasks(1, 5)...)
			return err
		})
		ids := enqueueFlow(t, q, flow.Batch(step(0)).Then(step(9)))
		startWorker(t, q)
		for range 7 {
			receive(t, runs.ran, "a run")
		}
		if last := runs.order[6]; last != 9 {
			t.Errorf("the last to run is %d, want the callback", last)
		}
		if _, err := flow.AddSibling(t.Context(), q, ids[0], step(1)); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("a sibling of a task that has ended: %v, want ErrNotFound", err)
		}
	}},
	{"the callback runs though the worker died after it had settled the last of the batch", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		runs.handle(q, flowKind, succeed)
		ids := enqueueFlow(t, q, flow.Batch(step(0)).Then(step(1)))
		// What the settle has committed, without the check of dependencies after it.
		f.db.MustExecContext(t.Context(), "update falldue_edges set outcome = 'done'")
		f.db.MustExecContext(t.Context(), "delete from falldue_tasks where state = 'open'")
		startWorker(t, q)
		waitForState(t, q, ids[1], falldue.StateDone)
	}},
	{"changes of a flow's tasks by hand count immediately, without a worker", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		for name, one := range map[string]struct {
			do   func(id int64, key string) error
			want []falldue.State // of what stays blocked, is cancelled, runs anyway, runs at a death, and of the one after what is cancelled
		}{
			"cancel": {func(id int64, _ string) error { return q.Cancel(t.Context(), id) },
				[]falldue.State{falldue.StateBlocked, falldue.StateCancelled, falldue.StateOpen, falldue.StateCancelled, falldue.StateCancelled}},
			"delete": {func(id int64, _ string) error { return q.Delete(t.Context(), id) },
				[]falldue.State{falldue.StateCancelled, falldue.StateCancelled, falldue.StateOpen, falldue.StateCancelled, falldue.StateCancelled}},
			"cancel many": {func(_ int64, key string) error {
				_, err := ops.New(q).CancelMany(t.Context(), ops.Filter{Key: key})
				return err
			}, []falldue.State{falldue.StateBlocked, falldue.StateCancelled, falldue.StateOpen, falldue.StateCancelled, falldue.StateCancelled}},
		} {
			var g flow.Flow
			first := g.Add(flowKind.Params(0, falldue.EnqueueOptions{Key: name}))
			g.Add(step(1), flow.After(first))
			inner := g.Add(step(2), flow.After(first), flow.CancelOnDeath())
			g.Add(step(3), flow.After(first), flow.RunAnyway())
			g.Add(step(4), flow.After(first), flow.AtFirstDeath())
			g.Add(step(5), flow.After(inner), flow.CancelOnDeath())
			ids := enqueueFlow(t, q, &g)
			if err := one.do(ids[first.Index()], name); err != nil {
				t.Fatal(err)
			}
			for i, want := range one.want {
				if info := readTask(t, q, ids[i+1]); info.State != want {
					t.Errorf("%s: task %d is %s, want %s", name, i+1, info.State, want)
				}
			}
		}
	}},
	{"a retried task counts as not ended", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		ids := enqueueFlow(t, q, flow.Batch(stepTasks(0, 2)...).Then(step(2)))
		counts := func(want flow.Counts) {
			t.Helper()
			if c, err := flow.CountsOf(t.Context(), q, ids[2]); err != nil || c != want {
				t.Errorf("the counts are %+v (error %v), want %+v", c, err, want)
			}
		}
		if err := q.Cancel(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		counts(flow.Counts{Pending: 1, Cancelled: 1})
		if err := q.Retry(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		counts(flow.Counts{Pending: 2})
	}},
	{"nothing is left of a flow whose tasks have gone", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		k := falldue.NewKind[int]("flow.gone", falldue.KindConfig{})
		runs.handle(q, k, succeed)
		enqueueFlow(t, q, flow.Batch(k.Params(0), k.Params(1)).Then(k.Params(2)))
		startWorker(t, q)
		for range 3 {
			receive(t, runs.ran, "a run")
		}
		for pause := newPause(); ; {
			var left int
			if err := f.db.GetContext(t.Context(), &left, "select (select count(*) from falldue_flows) + (select count(*) from falldue_edges)"); err != nil {
				t.Fatal(err)
			}
			if left == 0 {
				break
			}
			if !pause.next() {
				t.Fatalf("%d rows are left", left)
			}
		}
	}},
	{"tasks of a flow keep their keys, limits and order", func(t *testing.T, f *fixture) {
		const n = 5
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		k := falldue.NewKind[int]("flow.ordered", falldue.KindConfig{Limits: []falldue.Limit{falldue.InOrder()}})
		runs.handle(q, k, succeed)
		var list []falldue.EnqueueParams
		for i := range n + 1 {
			list = append(list, k.Params(i, falldue.EnqueueOptions{Key: "seven", Metadata: map[string]string{"trace": "t"}}))
		}
		ids := enqueueFlow(t, q, flow.Batch(list[:n]...).Then(list[n]))
		if info := readTask(t, q, ids[n]); info.Key != "seven" || len(info.Metadata) != 1 || info.Metadata["trace"] != "t" {
			t.Errorf("the callback has the key %q and the metadata %v", info.Key, info.Metadata)
		}
		startWorker(t, q)
		for want := range n + 1 {
			if got := receive(t, runs.ran, "a run"); got != want {
				t.Errorf("%d ran as the %d-th", got, want)
			}
		}
	}},
	{"middleware sees the tasks of a flow, and may add to them but not leave any out, put another before them or change their order", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		runs.handle(q, flowKind, succeed)
		changed := func(tasks []falldue.EnqueueParams) []falldue.EnqueueParams { return tasks }
		q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
			return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
				for i := range tasks {
					tasks[i].AddMetadata("trace", "t")
				}
				return next(ctx, tx, changed(tasks))
			}
		})
		ids := enqueueFlow(t, q, flow.Chain(stepTasks(0, 2)...))
		for _, id := range ids {
			if info := readTask(t, q, id); len(info.Metadata) != 1 || info.Metadata["trace"] != "t" {
				t.Errorf("task %d has the metadata %v", id, info.Metadata)
			}
		}
		startWorker(t, q)
		for want := range 2 {
			if got := receive(t, runs.ran, "a run"); got != want {
				t.Errorf("%d ran as the %d-th", got, want)
			}
		}
		for name, change := range map[string]func([]falldue.EnqueueParams) []falldue.EnqueueParams{
			"without its first task":    func(tasks []falldue.EnqueueParams) []falldue.EnqueueParams { return tasks[1:] },
			"with another before them":  func(tasks []falldue.EnqueueParams) []falldue.EnqueueParams { return append(stepTasks(9, 1), tasks...) },
			"with their order reversed": func(tasks []falldue.EnqueueParams) []falldue.EnqueueParams { slices.Reverse(tasks); return tasks },
		} {
			changed = change
			if _, err := flow.Chain(stepTasks(0, 2)...).Enqueue(t.Context(), q); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", name, err)
			}
		}
		if list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{After: ids[1]})); err != nil || len(list) > 0 {
			t.Errorf("%d tasks are stored (error %v), want none", len(list), err)
		}
	}},
}
