package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/steps"
)

// TestATaskThatCannotBeReadIsNotMissing: an outage is not the error of a task that does not exist.
func TestATaskThatCannotBeReadIsNotMissing(t *testing.T) {
	t.Parallel()
	q := newBacklog(t, testdb.SQLite).queue
	if err := ops.New(q).ChangeTask(t.Context(), 1, ops.TaskChange{Queue: "other"}); !errors.Is(err, falldue.ErrNotFound) {
		t.Errorf("a task that does not exist: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := ops.New(q).ChangeTask(ended, 1, ops.TaskChange{Queue: "other"}); errors.Is(err, falldue.ErrNotFound) || !errors.Is(err, context.Canceled) {
		t.Errorf("a task that cannot be read: %v", err)
	}
}

// TestTasksOfDeadWorkersWaitAfterAChange: a lost task that is given a later time waits for that time, and does not seem to
// run until then. It can be changed again, and its lost attempt is recorded.
func TestTasksOfDeadWorkersWaitAfterAChange(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		q := b.queue
		receipts, err := falldue.NewKind[int]("lost", falldue.KindConfig{}).EnqueueMany(t.Context(), q, make([]int, 3))
		if err != nil {
			t.Fatal(err)
		}
		b.db.MustExec("update falldue_tasks set attempts = 1, fence = 1, claimed_by = 'gone', updated_at = created_at")
		o, later := ops.New(q), time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := o.ChangeTask(t.Context(), receipts[0].ID, ops.TaskChange{RunAt: later}); err != nil {
			t.Fatal(err)
		}
		others := ops.Filter{Kind: "lost", State: falldue.StateOpen}
		if report, err := o.RunNowMany(t.Context(), others, ops.BulkOptions{Spread: ops.Spread{Rate: 0.001}}); err != nil || report.Changed != 2 {
			t.Fatalf("the report is %+v (error %v)", report, err)
		}
		waiting := 0
		for _, r := range receipts {
			task, err := q.Task(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if !task.UpdatedAt.After(task.Now) {
				continue
			}
			waiting++
			if task.State != falldue.StateSnoozed || task.ClaimedBy != "" {
				t.Errorf("the task is %s, claimed by %q", task.State, task.ClaimedBy)
			}
			if err := o.ChangeTask(t.Context(), r.ID, ops.TaskChange{RunAt: later.AddDate(1, 0, 0)}); err != nil {
				t.Error(err)
			}
			list, err := q.Attempts(t.Context(), r.ID)
			if err != nil || len(list) != 1 || list[0].Outcome != falldue.OutcomeLost || list[0].Fence != 1 || list[0].Worker != "gone" {
				t.Errorf("the recorded attempts are %+v (error %v)", list, err)
			}
		}
		if waiting != 2 {
			t.Errorf("%d tasks wait for later, want 2", waiting)
		}
	})
}

// TestAChangeOfALostTaskRecordsItsLoss: each change ends the claim of a dead worker, and the attempt is recorded with the
// fence of that claim. If the attempt was the last one, the task later dies of the loss.
func TestAChangeOfALostTaskRecordsItsLoss(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		b, ctx := newBacklog(t, engine), t.Context()
		o, urgent, later := ops.New(b.queue), -1, time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
		changes := []func(id int64) error{
			func(id int64) error { return o.ChangeTask(ctx, id, ops.TaskChange{Args: 2}) },
			func(id int64) error { return o.ChangeTask(ctx, id, ops.TaskChange{RunAt: later}) },
			func(id int64) error { return o.ChangeTask(ctx, id, ops.TaskChange{Queue: "other"}) },
			func(id int64) error { return o.ChangeTask(ctx, id, ops.TaskChange{Priority: &urgent}) },
			func(id int64) error { return o.RunNow(ctx, id) }, // the next claim records the loss
			func(id int64) error { return b.queue.Cancel(ctx, id) },
		}
		receipts, err := falldue.NewKind[json.RawMessage]("lost", falldue.KindConfig{}).EnqueueMany(ctx, b.queue, make([]json.RawMessage, len(changes)))
		if err != nil {
			t.Fatal(err)
		}
		b.db.MustExec("update falldue_tasks set attempts = 1, fence = 1, claimed_by = 'gone', updated_at = created_at")
		for _, step := range []string{"1, 'read', '1'", "2, 'upload', null"} {
			b.db.MustExec("insert into falldue_steps (task_id, fence, n, name, result, started_at, updated_at) select id, 1, " + step + ", created_at, created_at from falldue_tasks")
		}
		for i, r := range receipts {
			if err := changes[i](r.ID); err != nil {
				t.Fatal(err)
			}
		}
		b.db.MustExec("update falldue_tasks set updated_at = created_at where state <> 'cancelled'")
		logged := make(lines, 100)
		stop := b.start(falldue.Config{
			Queues: map[string]falldue.QueueConfig{"default": {}, "other": {}},
			Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelError})),
		}, handle(falldue.KindConfig{Policy: backoff.Constant(0).WithMaxAttempts(1)}, succeed, "lost"))
		for range len(changes) - 1 {
			select {
			case line := <-logged:
				if !strings.Contains(line, "its last attempt was lost") {
					t.Errorf("logged %s", line)
				}
			case <-time.After(testdb.Patience):
				t.Error("the dead tasks are not all logged")
			}
		}
		stop()
		for i, r := range receipts {
			task, err := b.queue.Task(ctx, r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if want := `the lease of attempt 1 of 1 ended: its worker "gone" vanished in step "upload"`; task.State != falldue.StateCancelled && (task.State != falldue.StateDead || task.LastError != want) {
				t.Errorf("after change %d, the task is %s with the error %q; want dead with %q", i, task.State, task.LastError, want)
			}
			list, err := b.queue.Attempts(ctx, r.ID)
			if err != nil || len(list) != 1 || list[0].Outcome != falldue.OutcomeLost || list[0].Attempt != 1 || list[0].Fence != 1 || list[0].Worker != "gone" || !strings.HasSuffix(list[0].Error, `vanished in step "upload"`) {
				t.Errorf("after change %d, the recorded attempts are %+v (error %v)", i, list, err)
			}
			if of, err := steps.Of(ctx, b.queue, r.ID); err != nil || len(of) != 2 || of[0].Crashes != 0 || of[1].Crashes != 1 {
				t.Errorf("after change %d, the recorded steps are %+v (error %v)", i, of, err)
			}
		}
	})
}

// TestATaskOfAFlowTakesNoUniqueKey: an enqueue that replaces the task would take it out of its flow.
func TestATaskOfAFlowTakesNoUniqueKey(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		q := newBacklog(t, engine).queue
		k := falldue.NewKind[string]("ship", falldue.KindConfig{})
		ids, err := flow.Chain(k.Params("first"), k.Params("second")).Enqueue(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		o, once := ops.New(q), falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}}
		want := fmt.Sprintf("falldue: invalid: Params has Unique: must not be set for task %d, since the task belongs to a flow", ids[0])
		err = o.ChangeTask(t.Context(), ids[0], ops.TaskChange{Params: new(k.Params("changed", once))})
		if !errors.Is(err, falldue.ErrInvalid) || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if err := o.ChangeTask(t.Context(), ids[0], ops.TaskChange{Params: new(k.Params("changed"))}); err != nil {
			t.Errorf("a change without a unique key: %v", err)
		}
	})
}
