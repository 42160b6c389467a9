package tasktest_test

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/tasktest"
)

// recorder is a test that fails without failing the real one.
type recorder struct {
	testing.TB
	text strings.Builder
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&r.text, format+"\n", args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

type mailArgs struct {
	To    string            `json:"to"`
	Heads map[string]string `json:"heads,omitempty"`
}

var mail = falldue.NewKind[mailArgs]("mail.send", falldue.KindConfig{Policy: backoff.Constant(time.Minute)})

func TestRequireEnqueued(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q := newQueue(t, testdb.Open(t, engine), falldue.Config{DoneRetention: time.Hour})
		tasktest.RequireNoneEnqueued(t, q, mail)
		ann, bob := mailArgs{To: "ann@example.org", Heads: map[string]string{"a": "b"}}, mailArgs{To: "bob@example.org"}
		id := enqueue(t, q, mail, ann, falldue.EnqueueOptions{Queue: "mail"})
		enqueue(t, q, mail, bob)
		enqueue(t, q, falldue.NewKind[string]("other", falldue.KindConfig{}), "")
		if info := tasktest.RequireEnqueued(t, q, mail, ann); info.ID != id || info.Queue != "mail" {
			t.Errorf("found %+v", info)
		}
		if all := tasktest.All(t, q, mail); len(all) != 2 || all[0].Args.To != ann.To || all[1].Args.To != bob.To {
			t.Errorf("all tasks are %+v", all)
		}
		for name, c := range map[string]struct {
			check func(t testing.TB)
			want  string
		}{
			"none":    {func(t testing.TB) { tasktest.RequireNoneEnqueued(t, q, mail) }, `2 tasks of kind "mail.send" are enqueued, want none`},
			"another": {func(t testing.TB) { tasktest.RequireEnqueued(t, q, mail, mailArgs{To: "eve@example.org"}) }, "bob@example.org"},
			"another kind": {func(t testing.TB) {
				tasktest.RequireEnqueued(t, q, falldue.NewKind[string]("mial", falldue.KindConfig{}), "")
			}, `no task of the kind waits or runs; tasks of kinds ["mail.send" "other"] do`},
			"no kind": {func(t testing.TB) { tasktest.All(t, q, falldue.Kind[string]{}) }, "the Kind is empty: make it with NewKind"},
		} {
			if text := failing(t, c.check); !strings.Contains(text, c.want) {
				t.Errorf("%s: the test failed with %q, want %q in it", name, text, c.want)
			}
		}
		enqueue(t, q, mail, bob)
		if text := failing(t, func(t testing.TB) { tasktest.RequireEnqueued(t, q, mail, bob) }); !strings.Contains(text, "2 tasks of kind") {
			t.Errorf("of two equal tasks one is required: %q", text)
		}
		falldue.Handle(q, mail, func(context.Context, falldue.Task[mailArgs]) error { return nil })
		tasktest.Drain(t, q)
		if all := tasktest.All(t, q, mail); len(all) != 1 { // the queue mail is not among the queue's
			t.Errorf("after they ran, %+v are enqueued", all)
		}
	})
}

func TestRequireEnqueuedTx(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := newQueue(t, db, falldue.Config{})
		tx, err := db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		args := mailArgs{To: "ann@example.org"}
		tasktest.RequireNoneEnqueuedTx(t, q, tx, mail)
		if _, err := mail.EnqueueTx(t.Context(), q, tx, args); err != nil {
			t.Fatal(err)
		}
		tasktest.RequireEnqueuedTx(t, q, tx, mail, args)
		if all := tasktest.AllTx(t, q, tx, mail); len(all) != 1 {
			t.Errorf("the transaction sees %+v", all)
		}
		tasktest.RequireNoneEnqueued(t, q, mail)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		tasktest.RequireNoneEnqueued(t, q, mail)
	})
}

// inTx ends a task in a transaction.
func inTx(ctx context.Context, task falldue.Task[int], begin func(context.Context, *sql.TxOptions) (*sql.Tx, error)) error {
	tx, err := begin(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := task.DoneTx(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

func TestDrainRunsUntilNothingIsDue(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := newQueue(t, db, falldue.Config{Queues: map[string]falldue.QueueConfig{"default": {}, "low": {}}})
		steps := falldue.NewKind[int]("step", falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
		falldue.Handle(q, steps, func(ctx context.Context, task falldue.Task[int]) error {
			switch task.Args {
			case 3:
				return falldue.Discard(errDown)
			case 4:
				return falldue.Snooze(time.Hour)
			case 5:
				return task.DoneTx(ctx, nil)
			case 6:
				return inTx(ctx, task, db.BeginTx)
			}
			_, err := steps.Enqueue(ctx, q, task.Args+2)
			return err
		})
		if text := failing(t, func(t testing.TB) { tasktest.RunOne(t, q) }); !strings.Contains(text, "no task is due") {
			t.Errorf("without a task RunOne failed with %q", text)
		}
		enqueue(t, q, steps, 1)
		enqueue(t, q, steps, 2, falldue.EnqueueOptions{Queue: "low", Priority: new(int)})
		own := backoff.Constant(time.Minute).WithMaxAttempts(1)
		enqueue(t, q, steps, 5, falldue.EnqueueOptions{Policy: own})
		enqueue(t, q, steps, 6)
		later := enqueue(t, q, steps, 1, falldue.EnqueueOptions{Delay: time.Hour})
		states := map[falldue.State]int{}
		for _, ran := range tasktest.Drain(t, q) {
			states[ran.State]++
			if ran.State == falldue.StateDead && ran.Err == nil || ran.State == falldue.StateDone && ran.Err != nil {
				t.Errorf("%+v", ran)
			}
		}
		if states[falldue.StateDone] != 3 || states[falldue.StateDead] != 2 || states[falldue.StateSnoozed] != 1 || len(states) != 3 {
			t.Errorf("the runs ended as %v", states)
		}
		left := tasktest.All(t, q, steps)
		if len(left) != 2 || left[0].ID != later || left[1].State != falldue.StateSnoozed {
			t.Errorf("left are %+v", left)
		}
	})
}

// TestRunOneObeysLimits: while a task runs, a limit of one holds the others back.
func TestRunOneObeysLimits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		kind := falldue.NewKind[int]("one.by.one", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(1)}})
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[int]) error {
			if text := failing(t, func(t testing.TB) { tasktest.RunOne(t, q) }); !strings.Contains(text, "no task is due") {
				t.Errorf("while task %d ran, RunOne failed with %q", task.ID, text)
			}
			return nil
		})
		enqueue(t, q, kind, 1)
		enqueue(t, q, kind, 2)
		if ran := clock.Advance(t, q, time.Hour); len(ran) != 2 || ran[0].State != falldue.StateDone || ran[1].State != falldue.StateDone {
			t.Errorf("%+v", ran)
		}
	})
}

// TestPausedTasksDoNotRun, until they are resumed.
func TestPausedTasksDoNotRun(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q := newQueue(t, testdb.Open(t, engine), falldue.Config{})
		kind, other := falldue.NewKind[int]("paused", falldue.KindConfig{}), falldue.NewKind[int]("other", falldue.KindConfig{})
		for _, k := range []falldue.Kind[int]{kind, other} {
			falldue.Handle(q, k, func(context.Context, falldue.Task[int]) error { return nil })
			enqueue(t, q, k, 1)
		}
		if err := q.Pause(t.Context(), falldue.Subject{Kind: "paused"}); err != nil {
			t.Fatal(err)
		}
		if ran := tasktest.Drain(t, q); len(ran) != 1 || ran[0].Kind != "other" {
			t.Errorf("while a kind was paused these ran: %+v", ran)
		}
		if err := q.Resume(t.Context(), falldue.Subject{Kind: "paused"}); err != nil {
			t.Fatal(err)
		}
		if ran := tasktest.Drain(t, q); len(ran) != 1 || ran[0].Kind != "paused" {
			t.Errorf("when it was resumed these ran: %+v", ran)
		}
	})
}

// TestAdvanceObeysRates: the clock goes on to when a rate admits the next task. A task that
// keeps the order waits for the one before, also while that waits for its retry.
func TestAdvanceObeysRates(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		rated := falldue.NewKind[int]("rated", falldue.KindConfig{Limits: []falldue.Limit{falldue.Rate(2, time.Hour)}})
		ordered := falldue.NewKind[int]("ordered", falldue.KindConfig{
			Policy: backoff.Constant(time.Hour), Limits: []falldue.Limit{falldue.InOrder()},
		})
		var at []time.Time
		falldue.Handle(q, rated, func(context.Context, falldue.Task[int]) error {
			at = append(at, clock.Now(t))
			return nil
		})
		falldue.Handle(q, ordered, func(_ context.Context, task falldue.Task[int]) error {
			if task.Args == 1 && task.Attempt < 3 {
				return errDown
			}
			return nil
		})
		for range 7 {
			enqueue(t, q, rated, 0)
		}
		first := enqueue(t, q, ordered, 1, falldue.EnqueueOptions{Key: "a"})
		second := enqueue(t, q, ordered, 2, falldue.EnqueueOptions{Key: "a"})
		var order []int64
		for _, ran := range clock.Advance(t, q, 24*time.Hour) {
			if ran.Kind == "ordered" {
				order = append(order, ran.ID)
			}
		}
		if len(at) != 7 {
			t.Fatalf("%d tasks ran", len(at))
		}
		for i := range at[2:] {
			// The handlers read the clock a little later than the limit does.
			if wait := at[i+2].Sub(at[i]); wait < time.Hour-time.Minute || wait > 2*time.Hour {
				t.Errorf("task %d ran %v after the one two before it", i+3, wait)
			}
		}
		if !slices.Equal(order, []int64{first, first, first, second}) {
			t.Errorf("the tasks %d and %d ran in the order %d", first, second, order)
		}
	})
}

// TestAdvanceStopsWherePausesAndOverridesEnd: tasks run then, as they do with a worker, and not at the end of the advance.
func TestAdvanceStopsWherePausesAndOverridesEnd(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		begin := clock.Now(t)
		at := map[string][]time.Duration{}
		fails := func(_ context.Context, task falldue.Task[int]) error {
			at[task.Kind] = append(at[task.Kind], clock.Now(t).Sub(begin).Truncate(time.Hour))
			if task.Attempt == 1 {
				return errDown
			}
			return nil
		}
		for _, name := range []string{"paused", "slower", "stepped"} {
			kind := falldue.NewKind[int](name, falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
			falldue.Handle(q, kind, fails)
			enqueue(t, q, kind, 0)
		}
		slower, err := backoff.ParseOverride("delay 10 * original")
		if err != nil {
			t.Fatal(err)
		}
		faster, err := backoff.ParseOverride("delay 2 * original")
		if err != nil {
			t.Fatal(err)
		}
		err = q.Pause(t.Context(), falldue.Subject{Kind: "paused"}, falldue.PauseOptions{Until: begin.Add(2 * time.Hour)})
		if err == nil {
			err = ops.New(q).SetPolicy(t.Context(), falldue.Subject{Kind: "slower"}, slower, ops.OverrideOptions{Until: begin.Add(4 * time.Hour)})
		}
		if err == nil {
			steps := []ops.OverrideStep{{After: 6 * time.Hour, Formula: faster}}
			err = ops.New(q).SetPolicy(t.Context(), falldue.Subject{Kind: "stepped"}, slower, ops.OverrideOptions{Steps: steps})
		}
		if err != nil {
			t.Fatal(err)
		}
		clock.Advance(t, q, 24*time.Hour)
		for name, want := range map[string][]time.Duration{"paused": {2 * time.Hour, 3 * time.Hour}, "slower": {0, 4 * time.Hour}, "stepped": {0, 6 * time.Hour}} {
			if !slices.Equal(at[name], want) {
				t.Errorf("kind %s ran after %v, want %v", name, at[name], want)
			}
		}
	})
}

// TestALockedTaskDoesNotStopTheClock: Advance passes over a task that nobody can claim.
func TestALockedTaskDoesNotStopTheClock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite || engine == testdb.TiDB {
			t.Skip("rows are not locked, or claims wait for them")
		}
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		falldue.Handle(q, mail, func(context.Context, falldue.Task[mailArgs]) error { return nil })
		id := enqueue(t, q, mail, mailArgs{})
		tx := db.MustBegin()
		defer func() { _ = tx.Rollback() }()
		tx.MustExec(fmt.Sprintf("select id from falldue_tasks where id = %d for update", id))
		if ran := clock.Advance(t, q, time.Hour); len(ran) != 0 {
			t.Errorf("ran %+v", ran)
		}
		if text := failing(t, func(t testing.TB) { tasktest.RunOne(t, q) }); !strings.Contains(text, "is due, and could not be claimed") {
			t.Errorf("of a task that is locked RunOne says %q", text)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		tasktest.RunOne(t, q)
	})
}

// TestAFailureInAHandlerEndsTheTest: a handler may call t.Fatal.
func TestAFailureInAHandlerEndsTheTest(t *testing.T) {
	q := newQueue(t, testdb.Open(t, testdb.SQLite), falldue.Config{})
	enqueue(t, q, mail, mailArgs{})
	text := failing(t, func(t testing.TB) {
		falldue.Handle(q, mail, func(context.Context, falldue.Task[mailArgs]) error {
			t.Fatal("not what I want")
			return nil
		})
		tasktest.Drain(t, q)
		t.Errorf("Drain went on")
	})
	if text != "not what I want\n" {
		t.Errorf("the test ended with %q", text)
	}
}

func TestWindows(t *testing.T) {
	policy := backoff.Constant(time.Minute).WithJitter("30s").WithMaxAttempts(3)
	for _, c := range []struct {
		name  string
		check func(t testing.TB)
		want  string // a part of the failure, or ""
	}{
		{"a wait", func(t testing.TB) { tasktest.AssertWait(t, policy, 1, time.Minute, 90*time.Second) }, ""},
		{"a wait that may be longer", func(t testing.TB) { tasktest.AssertWait(t, policy, 2, time.Minute, 89*time.Second) }, "1m0s to 1m30s"},
		{"a wait that may be shorter", func(t testing.TB) { tasktest.AssertWait(t, policy, 2, 61*time.Second, time.Hour) }, "1m0s to 1m30s"},
		{"the last attempt", func(t testing.TB) { tasktest.AssertWait(t, policy, 3, 0, time.Hour) }, "allows 3 attempts"},
		{"attempt 0", func(t testing.TB) { tasktest.AssertWait(t, policy, 0, 0, time.Hour) }, "attempt 0: must be 1 or more"},
		{"reversed", func(t testing.TB) { tasktest.AssertWait(t, policy, 1, 2*time.Minute, time.Minute) }, "min 2m0s: must be at most max 1m0s"},
		{"all, reversed", func(t testing.TB) { tasktest.AssertTotal(t, policy, 3*time.Minute, time.Minute) }, "min 3m0s: must be at most max 1m0s"},
		{"one duration", func(t testing.TB) { tasktest.AssertWait(t, policy.WithJitter("0"), 1, time.Hour, time.Hour) }, `waits 1m0s under the policy "delay 1m; attempts 3", want 1h0m0s`},
		{"all", func(t testing.TB) { tasktest.AssertTotal(t, policy, 2*time.Minute, 3*time.Minute) }, ""},
		{"all, longer", func(t testing.TB) { tasktest.AssertTotal(t, policy, 2*time.Minute, 179*time.Second) }, "2m0s to 3m0s"},
		{"all, shorter", func(t testing.TB) { tasktest.AssertTotal(t, policy, 121*time.Second, 3*time.Minute) }, "2m0s to 3m0s"},
		{"no end", func(t testing.TB) { tasktest.AssertTotal(t, policy.WithMaxAttempts(0), 0, time.Hour) }, "more than 100000 times"},
		{"an invalid policy", func(t testing.TB) { tasktest.AssertTotal(t, backoff.ParseDeferred("delay x"), 0, time.Hour) }, "delay"},
		{"an invalid policy's wait", func(t testing.TB) { tasktest.AssertWait(t, backoff.ParseDeferred("delay x"), 1, 0, time.Hour) }, "delay"},
	} {
		if text := failing(t, c.check); !strings.Contains(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s: %q, want %q in it", c.name, text, c.want)
		}
	}
}
