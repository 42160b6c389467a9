package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/ops"
)

var expiryCases = []conformanceCase{
	{"a task that has not started within its policy's limit expires, and others run", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[string]("expiring", falldue.KindConfig{DoneRetention: time.Hour, Policy: parsePolicy(t, "delay 0; attempts 3; start 10m")})
		ran := make(chan falldue.RunInfo, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
			ran <- task.RunInfo
			if task.Fence == 1 {
				return errFlaky
			}
			return nil
		})
		startWorker(t, q)
		now, err := ops.New(q).Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ago := func(d time.Duration) time.Time { return now.Add(-d) }
		late := enqueue(t, q, k, "late", falldue.EnqueueOptions{RunAt: ago(time.Hour)})
		patient := enqueue(t, q, k, "its own limit is longer", falldue.EnqueueOptions{RunAt: ago(time.Hour), Policy: parsePolicy(t, "delay 0; attempts 3; start 2h")})
		impatient := enqueue(t, q, k, "its own limit is shorter", falldue.EnqueueOptions{RunAt: ago(5 * time.Minute), Policy: parsePolicy(t, "delay 0; start 1m")})
		prompt := enqueue(t, q, k, "prompt")
		for _, id := range []int64{late, impatient} {
			info := waitForState(t, q, id, falldue.StateCancelled)
			if info.Attempts != 0 || info.LastError == "" {
				t.Errorf("the expired task is %+v; want no attempt and a reason", info)
			}
		}
		for _, id := range []int64{patient, prompt} {
			waitForState(t, q, id, falldue.StateDone) // after a failure, which is a start
		}
		close(ran)
		for run := range ran {
			if !slices.Contains([]int64{patient, prompt}, run.ID) {
				t.Errorf("the expired task %d ran", run.ID)
			}
		}
	}},
	{"many expired tasks are cancelled without a claim, tasks after them see that, the history counts them, and a retry runs them", func(t *testing.T, f *fixture) {
		const n = 1_200
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("expiring.many", falldue.KindConfig{DoneRetention: time.Hour, Policy: parsePolicy(t, "delay 0; start 10m")})
		ran := make(chan int64, n)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[int]) error {
			ran <- task.ID
			return nil
		})
		late := falldue.EnqueueOptions{RunAt: time.Now().Add(-48 * time.Hour), Priority: new(3)} // no worker expects tasks in that lane
		ids := enqueueFlow(t, q, flow.Batch(k.Params(0, late)).Then(k.Params(1), flow.RunAnyway()))
		var many []falldue.EnqueueParams
		for i := range n {
			many = append(many, k.Params(i, late))
		}
		receipts, err := q.EnqueueMany(t.Context(), many...)
		if err != nil {
			t.Fatal(err)
		}
		stop := startWorker(t, q)
		for _, id := range []int64{ids[0], receipts[0].ID, receipts[n-1].ID} {
			if info := waitForState(t, q, id, falldue.StateCancelled); !info.AttemptedAt.IsZero() {
				t.Errorf("the expired task %d was claimed", id)
			}
		}
		waitForState(t, q, ids[1], falldue.StateDone)
		if got := receive(t, ran, "the task after the expired one"); got != ids[1] {
			t.Errorf("task %d ran, want %d", got, ids[1])
		}
		if err := q.Retry(t.Context(), receipts[0].ID); err != nil {
			t.Fatal(err)
		}
		waitForState(t, q, receipts[0].ID, falldue.StateDone)
		stop()
		o := ops.New(q)
		left, err := o.Tasks(t.Context(), ops.Filter{State: falldue.StateCancelled}, ops.ListOptions{Limit: 1})
		if err != nil || len(left.Tasks) != 1 {
			t.Fatalf("the expired tasks are %+v (error %v)", left, err)
		}
		list, err := o.History(t.Context(), ops.HistoryFilter{Step: time.Hour, From: left.Tasks[0].UpdatedAt.Add(-2 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		expired := int64(0)
		for _, s := range list {
			expired += s.Expired
		}
		if expired != n+1 {
			t.Errorf("the history has %d expired tasks, want %d", expired, n+1)
		}
	}},
	{"a task that has not started by its own time expires, a claim may be early or late, and a retry lifts the time", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[string]("dated", falldue.KindConfig{DoneRetention: time.Hour, Policy: parsePolicy(t, "delay 0; attempts 3")})
		ran := make(chan falldue.RunInfo, 100)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
			ran <- task.RunInfo
			if task.Fence == 1 {
				return errFlaky
			}
			return nil
		})
		o := ops.New(q)
		now, err := o.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{"note": `"falldue.expires":`}
		past, future := falldue.EnqueueOptions{ExpireAt: now.Add(-time.Minute).Truncate(time.Millisecond), Metadata: texts}, falldue.EnqueueOptions{ExpireAt: now.Add(time.Hour)}
		late := enqueue(t, q, k, "late", past)
		prompt := enqueue(t, q, k, "prompt", future)
		plain := enqueue(t, q, k, "plain")
		after := enqueueFlow(t, q, flow.Batch(k.Params("late before another", past)).Then(k.Params("after it", falldue.EnqueueOptions{ExpireAt: past.ExpireAt}), flow.RunAnyway()))
		scheduled := enqueue(t, q, k, "run now", falldue.EnqueueOptions{RunAt: now.Add(time.Hour), ExpireAt: now.Add(2 * time.Hour)})
		moved := enqueue(t, q, k, "moved", falldue.EnqueueOptions{RunAt: now.Add(-time.Hour), Queue: "elsewhere", ExpireAt: past.ExpireAt})
		if info := waitForState(t, q, late, falldue.StateOpen); !info.ExpireAt.Equal(past.ExpireAt) || !maps.Equal(info.Metadata, texts) {
			t.Errorf("the task expires at %v with metadata %v; want %v and %v", info.ExpireAt, info.Metadata, past.ExpireAt, texts)
		}
		for _, bad := range []falldue.EnqueueOptions{{ExpireAt: now, RunAt: now}, {ExpireAt: time.Date(9001, 1, 1, 0, 0, 0, 0, time.UTC)}} {
			if _, err := k.Enqueue(t.Context(), q, "bad", bad); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("an enqueue with %+v: %v; want ErrInvalid", bad, err)
			}
		}
		startWorker(t, q)
		if err := o.ChangeTask(t.Context(), moved, ops.TaskChange{Queue: falldue.DefaultQueue}); err != nil {
			t.Fatal(err)
		}
		if err := o.RunNow(t.Context(), scheduled); err != nil {
			t.Fatal(err)
		}
		for _, id := range []int64{late, after[0], after[1], moved} {
			info := waitForState(t, q, id, falldue.StateCancelled)
			if info.Attempts != 0 || info.LastError != "expired: no attempt began by the task's ExpireAt" {
				t.Errorf("the expired task is %+v; want no attempt and a reason", info)
			}
		}
		runs := map[int64]int{}
		for _, id := range []int64{prompt, plain, scheduled} {
			waitForState(t, q, id, falldue.StateDone) // after a failure, which is a start
		}
		if err := q.Retry(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		info := waitForState(t, q, late, falldue.StateDone)
		if !info.ExpireAt.IsZero() || !maps.Equal(info.Metadata, texts) {
			t.Errorf("the retried task expires at %v with metadata %v; want none and %v", info.ExpireAt, info.Metadata, texts)
		}
		close(ran)
		for run := range ran {
			runs[run.ID]++
		}
		if runs[prompt] != 2 || runs[plain] != 2 || runs[scheduled] != 2 || runs[late] < 1 || len(runs) != 4 {
			t.Errorf("the runs by task are %v; want runs of %d, %d, %d and, after its retry, %d", runs, prompt, plain, scheduled, late)
		}
	}},
	{"a task expires if its worker vanished after a claim that was too late, and runs if the claim began in time", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[string]("dated.lost", falldue.KindConfig{DoneRetention: time.Hour, Policy: parsePolicy(t, "delay 0; attempts 3")})
		ran := make(chan int64, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
			ran <- task.ID
			return nil
		})
		now, err := ops.New(q).Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
		late := enqueue(t, q, k, "claimed late", falldue.EnqueueOptions{RunAt: ago(3), ExpireAt: ago(2)})
		inTime := enqueue(t, q, k, "claimed in time", falldue.EnqueueOptions{RunAt: ago(3), ExpireAt: ago(2)})
		snoozed := enqueue(t, q, k, "snoozed, and then claimed late", falldue.EnqueueOptions{RunAt: ago(3), ExpireAt: ago(2)})
		// As claims of a worker that vanished leave the rows.
		for id, claim := range map[int64]string{
			late:    "fence = 1, first_attempted_at = created_at",
			inTime:  "fence = 1, first_attempted_at = updated_at",
			snoozed: "fence = 2, first_attempted_at = created_at",
		} {
			f.db.MustExecContext(t.Context(), fmt.Sprintf("update falldue_tasks set attempts = 1, claimed_by = 'vanished/1', attempted_at = created_at, %s where id = %d", claim, id))
		}
		stop := startWorker(t, q)
		for _, id := range []int64{inTime, snoozed} {
			waitForState(t, q, id, falldue.StateDone)
		}
		info := waitForState(t, q, late, falldue.StateCancelled)
		stop()
		if info.Attempts != 1 || info.LastError != "expired: no attempt began by the task's ExpireAt" {
			t.Errorf("the expired task is %+v; want the lost attempt and a reason", info)
		}
		if list, err := q.Attempts(t.Context(), late); err != nil || len(list) != 1 || list[0].Outcome != "lost" {
			t.Errorf("the attempts of the expired task are %+v (error %v); want a lost one", list, err)
		}
		close(ran)
		for id := range ran {
			if id == late {
				t.Error("the expired task ran")
			}
		}
	}},
	{"many tasks that have not started by times of their own expire in batches, and use up no rate", func(t *testing.T, f *fixture) {
		const n = 1_500
		claims := 0
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("dated.many", falldue.KindConfig{Limits: []falldue.Limit{falldue.Rate(1, time.Hour)}})
		ran := make(chan int, n)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[int]) error {
			ran <- task.Args
			return nil
		})
		var many []falldue.EnqueueParams
		for i := range n {
			many = append(many, k.Params(i, falldue.EnqueueOptions{ExpireAt: time.Now().Add(-time.Hour - time.Duration(i)*time.Millisecond)}))
		}
		receipts, err := q.EnqueueMany(t.Context(), many...)
		if err != nil {
			t.Fatal(err)
		}
		stop := startWorker(t, q)
		for _, r := range receipts {
			if info := waitForState(t, q, r.ID, falldue.StateCancelled); !info.AttemptedAt.IsZero() {
				claims++
			}
		}
		enqueue(t, q, k, n)
		if got := receive(t, ran, "the task that has not expired"); got != n {
			t.Errorf("the expired task %d ran", got)
		}
		stop()
		if claims > n/10 {
			t.Errorf("%d of %d expired tasks were claimed; want few", claims, n)
		}
	}},
}
