package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// manyTasks is more than two batches of a change of many tasks.
const manyTasks = 1200

var bulkCases = []conformanceCase{
	{"Delete removes a task in any state with all that belongs to it, and one that runs only if it is told so", func(t *testing.T, f *fixture) {
		q, control := f.queue(t, falldue.Config{Lease: 10 * time.Minute}), f.queueOn(t, f.open(t), falldue.Config{})
		k := falldue.NewKind[noteArgs]("long", falldue.KindConfig{})
		started, ended := make(chan int64, 1), make(chan error, 1)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			task.Progress(0.5, "half")
			started <- task.ID
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
		waiting, cancelled := enqueue(t, q, k, noteArgs{}), enqueue(t, q, k, noteArgs{})
		if err := q.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		for _, id := range []int64{waiting, cancelled} {
			if err := q.Delete(t.Context(), id); err != nil {
				t.Errorf("delete: %v", err)
			}
			if err := q.Delete(t.Context(), id); !errors.Is(err, falldue.ErrNotFound) {
				t.Errorf("the second delete: error %v, want ErrNotFound", err)
			}
		}
		startWorker(t, q)
		id := enqueue(t, q, k, noteArgs{})
		if got := receive(t, started, "the task to start"); got != id {
			t.Fatalf("task %d runs, which is deleted", got)
		}
		if err := control.Delete(t.Context(), id); !errors.Is(err, falldue.ErrRunning) {
			t.Errorf("delete of a running task: error %v, want ErrRunning", err)
		}
		if err := control.Delete(t.Context(), id, falldue.DeleteOptions{Running: true}); err != nil {
			t.Error(err)
		}
		if cause := receive(t, ended, "the handler's context to end"); !errors.Is(cause, falldue.ErrCancelled) {
			t.Errorf("the cause is %v, want ErrCancelled", cause)
		}
		if _, err := q.Task(t.Context(), id); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("the deleted task: error %v", err)
		}
	}},
	{"Retry makes a done task run again without its result, and with other arguments if options ask for them", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour, Codec: boxes{"bulk"}})
		k := falldue.NewKind[noteArgs]("note", falldue.KindConfig{})
		ran := make(chan string, 1)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Args.Text
			return task.SetResult(task.Args.Text)
		})
		id := enqueue(t, q, k, noteArgs{Text: "one"})
		stop := startWorker(t, q)
		receive(t, ran, "the first run")
		waitForState(t, q, id, falldue.StateDone)
		stop()
		if err := q.Retry(t.Context(), id); !errors.Is(err, falldue.ErrWrongState) {
			t.Errorf("Retry of a done task: error %v, want ErrWrongState", err)
		}
		if err := q.Retry(t.Context(), id, falldue.RetryOptions{State: falldue.StateDone}); err != nil {
			t.Fatal(err)
		}
		if info := readTask(t, q, id); info.State != falldue.StateOpen || info.Attempts != 0 || info.Result != nil {
			t.Errorf("after Retry the task is %+v", info)
		}
		if err := q.Retry(t.Context(), id, falldue.RetryOptions{Args: noteArgs{}}); !errors.Is(err, falldue.ErrWrongState) {
			t.Errorf("Retry of an open task with arguments: error %v, want ErrWrongState", err)
		}
		if err := q.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []any{json.RawMessage(`{"text":`), func() {}, "\x00"} {
			if err := q.Retry(t.Context(), id, falldue.RetryOptions{Args: bad}); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("Retry with arguments of type %T: error %v, want ErrInvalid", bad, err)
			}
		}
		if err := q.Retry(t.Context(), id, falldue.RetryOptions{Args: json.RawMessage(`{"text": "two"}`)}); err != nil {
			t.Fatal(err)
		}
		startWorker(t, q)
		if got := receive(t, ran, "the run with other arguments"); got != "two" {
			t.Errorf("the task ran with %q, want two", got)
		}
	}},
	{"DeleteMany skips running tasks, and with Running it deletes them and ends their handlers", func(t *testing.T, f *fixture) {
		q, control := f.queue(t, falldue.Config{Concurrency: 2, ShutdownTimeout: -1}), f.queueOn(t, f.open(t), falldue.Config{})
		k := falldue.NewKind[int]("long", falldue.KindConfig{})
		started, ended := make(chan int64, 2), make(chan error, 2)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
			started <- task.ID
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
		enqueueNumbers(t, q, k, 2)
		startWorker(t, q)
		for range 2 {
			receive(t, started, "the tasks to start")
		}
		enqueueNumbers(t, q, k, 1)
		report, err := ops.New(control).DeleteMany(t.Context(), ops.Filter{Kind: "long"})
		if err != nil || report.Changed != 1 || report.Left != 2 {
			t.Errorf("without Running the report is %+v, error %v; want 1 deleted and 2 left", report, err)
		}
		report, err = ops.New(control).DeleteMany(t.Context(), ops.Filter{Kind: "long"}, ops.BulkOptions{Running: true})
		if err != nil || report.Changed != 2 || report.Left != 0 {
			t.Errorf("with Running the report is %+v, error %v; want 2 deleted", report, err)
		}
		for range 2 {
			if cause := receive(t, ended, "the handlers' contexts to end"); !errors.Is(cause, falldue.ErrCancelled) {
				t.Errorf("the cause is %v, want ErrCancelled", cause)
			}
		}
		if n := countOf(t, q, "long", ""); n != 0 {
			t.Errorf("%d tasks are left", n)
		}
	}},
	{"changes of many tasks change those that match and no others, and a dry run counts them", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k, other := falldue.NewKind[int]("many", falldue.KindConfig{}), falldue.NewKind[int]("other", falldue.KindConfig{})
		enqueueNumbers(t, q, k, manyTasks)
		keep := enqueue(t, q, other, 1)
		keyed := enqueue(t, q, k, 1, falldue.EnqueueOptions{Key: "customer 7"})
		if err := q.Delete(t.Context(), keyed); err != nil {
			t.Fatal(err)
		}
		many := ops.Filter{Kind: "many"}
		for _, step := range []struct {
			name   string
			change func(context.Context, ops.Filter, ...ops.BulkOptions) (ops.BulkReport, error)
			filter ops.Filter
			before falldue.State
			after  falldue.State // "" is deleted
		}{
			{"cancel", ops.New(q).CancelMany, many, falldue.StateOpen, falldue.StateCancelled},
			{"retry", ops.New(q).RetryMany, ops.Filter{Kind: "many", State: falldue.StateCancelled}, falldue.StateCancelled, falldue.StateOpen},
			{"delete", ops.New(q).DeleteMany, many, falldue.StateOpen, ""},
		} {
			report, err := step.change(t.Context(), step.filter, ops.BulkOptions{DryRun: true})
			if err != nil || report.Changed != manyTasks || report.Left+report.Failed != 0 || !report.Complete {
				t.Errorf("a dry run of %s: %+v, error %v", step.name, report, err)
			}
			if n := countOf(t, q, "many", step.before); n != manyTasks {
				t.Errorf("after a dry run of %s, %d of %d tasks are %s", step.name, n, manyTasks, step.before)
			}
			steps := 0
			report, err = step.change(t.Context(), step.filter, ops.BulkOptions{Report: func(ops.BulkReport) { steps++ }})
			if err != nil || report.Changed != manyTasks || report.Left+report.Failed != 0 || !report.Complete || steps < 3 {
				t.Errorf("%s: %+v in %d steps, error %v", step.name, report, steps, err)
			}
			if n := countOf(t, q, "many", step.after); n != manyTasks && step.after != "" {
				t.Errorf("after %s, %d of %d tasks are %s", step.name, n, manyTasks, step.after)
			}
		}
		if n := countOf(t, q, "many", ""); n != 0 {
			t.Errorf("%d tasks are left after all were deleted", n)
		}
		if info := readTask(t, q, keep); info.State != falldue.StateOpen || info.Fence != 0 {
			t.Errorf("a task of another kind is %+v", info)
		}
		for name, change := range map[string]func() (ops.BulkReport, error){
			"no filter": func() (ops.BulkReport, error) {
				return ops.New(q).DeleteMany(t.Context(), ops.Filter{})
			},
			"a retry of open tasks": func() (ops.BulkReport, error) {
				return ops.New(q).RetryMany(t.Context(), ops.Filter{State: falldue.StateOpen})
			},
			"a cancel of dead tasks": func() (ops.BulkReport, error) {
				return ops.New(q).CancelMany(t.Context(), ops.Filter{State: falldue.StateDead})
			},
			"a spread of a delete": func() (ops.BulkReport, error) {
				return ops.New(q).DeleteMany(t.Context(), many, ops.BulkOptions{Spread: ops.Spread{Rate: 1}})
			},
			"a delete in place": func() (ops.BulkReport, error) {
				return ops.New(q).DeleteMany(t.Context(), many, ops.BulkOptions{InPlace: true})
			},
			"a spread in place": func() (ops.BulkReport, error) {
				return ops.New(q).RetryMany(t.Context(), many, ops.BulkOptions{InPlace: true, Spread: ops.Spread{Rate: 1}})
			},
			"a rate and a time": func() (ops.BulkReport, error) {
				return ops.New(q).RetryMany(t.Context(), many, ops.BulkOptions{Spread: ops.Spread{Rate: 1, Over: time.Hour}})
			},
		} {
			if _, err := change(); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("%s: error %v, want ErrInvalid", name, err)
			}
		}
	}},
	{"tasks retried at a rate fall due at no more than that, over a time evenly, and a change that was stopped continues", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("many", falldue.KindConfig{})
		enqueueNumbers(t, q, k, manyTasks)
		cancelled := ops.Filter{Kind: "many", State: falldue.StateCancelled}
		cancelAll := func() {
			if _, err := ops.New(q).CancelMany(t.Context(), ops.Filter{Kind: "many"}); err != nil {
				t.Fatal(err)
			}
		}
		cancelAll()
		stopped, stop := context.WithCancel(t.Context())
		first, err := ops.New(q).RetryMany(stopped, cancelled, ops.BulkOptions{Spread: ops.Spread{Rate: 100}, Report: func(ops.BulkReport) { stop() }})
		if !errors.Is(err, context.Canceled) || first.Changed == 0 || first.Changed >= manyTasks || first.Complete || first.DueFrom.IsZero() {
			t.Fatalf("a stopped change: %+v, error %v", first, err)
		}
		second, err := ops.New(q).RetryMany(t.Context(), cancelled, ops.BulkOptions{After: first.After, Spread: ops.Spread{Rate: 100, From: first.DueFrom}})
		if err != nil || first.Changed+second.Changed != manyTasks || !second.Complete {
			t.Fatalf("the change that continues: %+v, error %v", second, err)
		}
		if n := busiestSecond(t, q, "many"); n > 110 || n < 50 {
			t.Errorf("%d tasks fall due in a second, want 100", n)
		}
		cancelAll()
		if _, err := ops.New(q).RetryMany(t.Context(), cancelled, ops.BulkOptions{Spread: ops.Spread{Over: time.Minute}}); err != nil {
			t.Fatal(err)
		}
		if n := busiestSecond(t, q, "many"); n > 40 {
			t.Errorf("%d tasks fall due in a second, want about %d", n, manyTasks/60)
		}
	}},
	{"of many tasks with one unique key that are retried one runs again, and the others say which", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("unique", falldue.KindConfig{})
		once := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}}
		var ids []int64
		for range 3 { // each is stored because the one before it is cancelled
			ids = append(ids, enqueue(t, q, k, 1, once))
			if err := q.Cancel(t.Context(), ids[len(ids)-1]); err != nil {
				t.Fatal(err)
			}
		}
		free := enqueue(t, q, k, 2, once)
		if err := q.Cancel(t.Context(), free); err != nil {
			t.Fatal(err)
		}
		report, err := ops.New(q).RetryMany(t.Context(), ops.Filter{Kind: "unique", State: falldue.StateCancelled})
		if err != nil || report.Changed != 2 || report.Failed != 2 || !report.Complete {
			t.Fatalf("the report is %+v, error %v; want 2 retried and 2 failed", report, err)
		}
		open := 0
		for _, id := range ids {
			if readTask(t, q, id).State == falldue.StateOpen {
				open++
			}
		}
		if open != 1 || readTask(t, q, free).State != falldue.StateOpen {
			t.Errorf("%d tasks with one key are open", open)
		}
		for _, failure := range report.Failures {
			exists, ok := errors.AsType[*falldue.ExistsError](failure.Err)
			if !ok || !slices.Contains(ids, exists.ID) || exists.ID == failure.ID {
				t.Errorf("the failure of task %d is %v", failure.ID, failure.Err)
			}
		}
		if id := enqueue(t, q, k, 1, once); !slices.Contains(ids, id) {
			t.Errorf("a new task is stored alongside the one that runs again: %d", id)
		}
	}},
	{"pages do not shift while tasks come and go", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("listed", falldue.KindConfig{})
		ids := enqueueNumbers(t, q, k, 90)
		seen := map[int64]int{}
		page := ops.Page{More: true}
		for i := 0; page.More; i++ {
			var err error
			if page, err = ops.New(q).Tasks(t.Context(), ops.Filter{Kind: "listed", Phase: falldue.PhaseDue}, ops.ListOptions{After: page.Next, Limit: 10}); err != nil {
				t.Fatal(err)
			}
			for _, task := range page.Tasks {
				seen[task.ID]++
			}
			if i < 5 { // the first of each page goes, and others come at the end
				if err := q.Delete(t.Context(), page.Tasks[0].ID); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, enqueueNumbers(t, q, k, 5)...)
			}
		}
		for _, id := range ids {
			if seen[id] != 1 {
				t.Errorf("task %d was listed %d times", id, seen[id])
			}
		}
	}},
	{"a search in payloads finds fields and texts, whatever the codec", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Codec: boxes{"bulk"}})
		k := falldue.NewKind[map[string]any]("order", falldue.KindConfig{})
		var ids []int64
		for _, args := range []map[string]any{
			{"order": 42, "to": "ann@example.com", "lines": []any{1, 2}}, {"order": 421, "to": "bob@example.com"}, {"order": 42.0, "nested": map[string]any{"order": 7}},
		} {
			ids = append(ids, enqueue(t, q, k, args))
		}
		for match, want := range map[string][]int64{
			`{"order": 42}`: {ids[0], ids[2]}, `{"nested": {"order": 7.0}}`: {ids[2]}, `{"lines": [2]}`: {ids[0]}, `{"order": "42"}`: nil,
			"ann@example": {ids[0]}, "example.com": ids[:2], `{"order": 42, "to": "bob@example.com"}`: nil, `"order":421`: {ids[1]},
		} {
			page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Kind: "order", Match: match})
			var got []int64
			for _, task := range page.Tasks {
				got = append(got, task.ID)
			}
			if err != nil || !slices.Equal(got, want) || page.Bounded || page.More {
				t.Errorf("%s matches %v, error %v, want %v", match, got, err, want)
			}
		}
	}},
}

// enqueueNumbers stores n tasks and returns their IDs.
func enqueueNumbers(t *testing.T, q *falldue.Queue, k falldue.Kind[int], n int) []int64 {
	t.Helper()
	args := make([]int, n)
	for i := range args {
		args[i] = i
	}
	receipts, err := k.EnqueueMany(t.Context(), q, args)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, n)
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids
}

// countOf returns how many tasks of a kind are in a state, or in any.
func countOf(t *testing.T, q *falldue.Queue, kind string, state falldue.State) int {
	t.Helper()
	list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{Kind: kind, State: state}, ops.ListOptions{Limit: 10_000}))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// busiestSecond returns the greatest number of tasks of a kind that fall due in a second.
func busiestSecond(t *testing.T, q *falldue.Queue, kind string) (most int) {
	t.Helper()
	list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{Kind: kind, State: falldue.StateOpen}, ops.ListOptions{Limit: 10_000}))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b falldue.TaskInfo) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	first := 0
	for i, task := range list {
		for task.UpdatedAt.Sub(list[first].UpdatedAt) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
