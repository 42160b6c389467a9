package queuetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// parseOverride parses the text of an override of policies.
func parseOverride(t *testing.T, text string) backoff.Override {
	t.Helper()
	o, err := backoff.ParseOverride(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// setPolicy sets an override.
func setPolicy(t *testing.T, q *falldue.Queue, s falldue.Subject, text string, o ...ops.OverrideOptions) {
	t.Helper()
	if err := ops.New(q).SetPolicy(t.Context(), s, parseOverride(t, text), o...); err != nil {
		t.Fatal(err)
	}
}

// failedOnce waits until a task has failed once and waits.
func failedOnce(t *testing.T, q *falldue.Queue, id int64) falldue.TaskInfo {
	t.Helper()
	return waitFor(t, q, id, "waiting", func(i falldue.TaskInfo) bool {
		return i.Attempts == 1 && i.State == falldue.StateOpen && i.ClaimedBy == ""
	})
}

var policyCases = []conformanceCase{
	{"a policy that is set for a queue, a kind, a policy or a key holds on all workers for tasks that wait, until it is cleared", func(t *testing.T, f *fixture) {
		own := parsePolicy(t, "delay 2h")
		for _, subject := range []falldue.Subject{{Queue: "default"}, {Kind: "slow"}, {Policy: own.Key()}, {Key: "customer 7"}, {Queue: "default", Kind: "slow", Key: "customer 7"}} {
			q, control := f.queue(t, falldue.Config{Queues: twoQueues}), f.queueOn(t, f.open(t), falldue.Config{})
			k := falldue.NewKind[noteArgs]("slow", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")})
			falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return errFlaky })
			stop := startWorker(t, q)
			opts := falldue.EnqueueOptions{Key: "customer 7"}
			if subject.Policy != "" {
				opts.Policy = own
			}
			id := enqueue(t, q, k, noteArgs{}, opts)
			other := enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Queue: "other", Key: "other"})
			before := failedOnce(t, q, id)
			if subject.Kind == "slow" && subject.Key == "" {
				other = id
			}
			failedOnce(t, q, other)

			setPolicy(t, control, subject, "100ms + 0 * original", ops.OverrideOptions{Note: falldue.Note{Who: "ann", Why: "the bank is open – ☂"}})
			if info := readTask(t, q, id); info.Attempts == 1 && !info.UpdatedAt.Equal(before.UpdatedAt) {
				t.Errorf("%s: the row has been written: %+v", subject, info)
			}
			waitFor(t, q, id, "tried again", func(i falldue.TaskInfo) bool { return i.Attempts > 2 })
			list, err := ops.New(control).Overrides(t.Context())
			if err != nil || len(list) != 1 || list[0].String() != subject.String() || list[0].Who != "ann" || list[0].Formula.String() != "100ms + 0 * original" {
				t.Errorf("%s: the overrides are %+v (error %v)", subject, list, err)
			}
			if err := ops.New(control).ClearPolicy(t.Context(), subject, falldue.Note{Who: "bob"}); err != nil {
				t.Fatal(err)
			}
			// A worker that has cleared it tries no more.
			attempts, same, start := 0, 0, time.Now()
			waitFor(t, q, id, "left alone", func(i falldue.TaskInfo) bool {
				if same++; i.Attempts != attempts || i.ClaimedBy != "" {
					attempts, same, start = i.Attempts, 0, time.Now()
				}
				return same > 0 && time.Since(start) > 500*time.Millisecond
			})
			if info := readTask(t, q, other); other != id && info.Attempts != 1 {
				t.Errorf("%s: a task that it does not name is %+v", subject, info)
			}
			if list, err := ops.New(control).Overrides(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("%s: after the end the overrides are %+v (error %v)", subject, list, err)
			}
			stop()
		}
		history, err := ops.New(f.queue(t, falldue.Config{})).OverrideHistory(t.Context())
		if err != nil || len(history) != 10 || history[0].Cleared || !history[1].Cleared || history[1].Who != "bob" {
			t.Errorf("the history is %+v (error %v)", history, err)
		}
	}},
	{"an override applies to tasks with a per-task policy only if it says so, and changes theirs", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("slow", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")})
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return errFlaky })
		startWorker(t, q)
		own := parsePolicy(t, "delay 100s")
		id, usual := enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Policy: own}), enqueue(t, q, k, noteArgs{})
		failedOnce(t, q, id)
		setPolicy(t, q, falldue.Subject{Kind: "slow"}, "original / 1000")
		waitFor(t, q, usual, "tried again", func(i falldue.TaskInfo) bool { return i.Attempts > 1 })
		if info := readTask(t, q, id); info.Attempts != 1 {
			t.Errorf("the task with a per-task policy is %+v", info)
		}
		setPolicy(t, q, falldue.Subject{Kind: "slow"}, "original / 1000", ops.OverrideOptions{IncludeOwn: true})
		waitFor(t, q, id, "tried again", func(i falldue.TaskInfo) bool { return i.Attempts > 2 })
	}},
	{"a policy that is set while a handler runs decides what becomes of its task", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("runs", falldue.KindConfig{Policy: parsePolicy(t, "delay 0s; attempts 9")})
		started, end := make(chan int64, 10), make(chan struct{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			started <- task.ID
			<-end
			return errFlaky
		})
		applied, probe := make(chan int, 1), falldue.NewKind[noteArgs]("probe", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h; attempts 9")})
		falldue.Handle(q, probe, func(_ context.Context, task falldue.Task[noteArgs]) error {
			if task.Attempt == 3 {
				applied <- task.MaxAttempts
			}
			return errFlaky
		})
		startWorker(t, q)
		id := enqueue(t, q, k, noteArgs{})
		receive(t, started, "the task to start")
		setPolicy(t, q, falldue.Subject{Kind: "runs"}, "attempts 1")
		// A worker that applies a later override applies this one, too.
		setPolicy(t, q, falldue.Subject{Kind: "probe"}, "10ms; attempts 3")
		enqueue(t, q, probe, noteArgs{})
		if most := receive(t, applied, "the probe to run by its override"); most != 3 {
			t.Errorf("the probe has %d attempts", most)
		}
		close(end)
		if info := waitForState(t, q, id, falldue.StateDead); info.Attempts != 1 {
			t.Errorf("the task is %+v", info)
		}
		if attempts, err := q.Attempts(t.Context(), id); err != nil || len(attempts) != 1 || attempts[0].Outcome != falldue.OutcomeDead {
			t.Errorf("the attempts are %+v (error %v), want one after which it is dead", attempts, err)
		}
	}},
	{"a task that waits is due or backs off by the policy that is set", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("waits", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")})
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return errFlaky })
		stop := startWorker(t, q)
		id := enqueue(t, q, k, noteArgs{})
		failedOnce(t, q, id)
		stop()
		for policy, want := range map[string]falldue.Phase{"1ms": falldue.PhaseDue, "max(original, 1d)": falldue.PhaseBackingOff} {
			setPolicy(t, q, falldue.Subject{Kind: "waits"}, policy)
			info := waitFor(t, q, id, "a moment old", func(i falldue.TaskInfo) bool { return i.Now.Sub(i.UpdatedAt) > 5*time.Millisecond })
			tasks := []falldue.TaskInfo{info}
			if err := ops.New(q).SetPhases(t.Context(), tasks); err != nil || tasks[0].Phase != want {
				t.Errorf("under %s the phase is %v (error %v), want %s", policy, tasks[0].Phase, err, want)
			}
		}
	}},
	{"a kind without a policy has the default policy of the worker's configuration", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DefaultPolicy: parsePolicy(t, "delay 0s; attempts 2")})
		k, other := falldue.NewKind[noteArgs]("plain", falldue.KindConfig{}), falldue.NewKind[noteArgs]("other", falldue.KindConfig{Policy: parsePolicy(t, "delay 0s; attempts 3")})
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return errFlaky })
		falldue.Handle(q, other, func(context.Context, falldue.Task[noteArgs]) error { return errFlaky })
		startWorker(t, q)
		if info := waitForState(t, q, enqueue(t, q, k, noteArgs{}), falldue.StateDead); info.Attempts != 2 {
			t.Errorf("the task is %+v", info)
		}
		if info := waitForState(t, q, enqueue(t, q, other, noteArgs{}), falldue.StateDead); info.Attempts != 3 {
			t.Errorf("the task of a kind with a policy is %+v", info)
		}
	}},
	{"a policy that is set with steps and an end takes the steps and ends by the database's clock", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("steps", falldue.KindConfig{Policy: parsePolicy(t, "delay 50ms")})
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return errFlaky })
		setPolicy(t, q, falldue.Subject{Kind: "steps"}, "1h") // so that the first attempt may take its time
		startWorker(t, q)
		id := enqueue(t, q, k, noteArgs{})
		failedOnce(t, q, id)
		step := ops.OverrideStep{After: time.Second, Formula: parseOverride(t, "2h")}
		until := soon(t, q, id, 3*time.Second, func(until time.Time) error {
			return ops.New(q).SetPolicy(t.Context(), falldue.Subject{Kind: "steps"}, parseOverride(t, "1h"), ops.OverrideOptions{Steps: []ops.OverrideStep{step}, Until: until})
		})
		if again := waitFor(t, q, id, "tried again", func(i falldue.TaskInfo) bool { return i.Attempts > 1 }); again.AttemptedAt.Before(until.Add(-time.Millisecond)) {
			t.Errorf("the task ran again at %v, before the end of the override at %v", again.AttemptedAt, until)
		}
		history, err := ops.New(q).OverrideHistory(t.Context())
		if err != nil || len(history) != 2 || len(history[1].Steps) != 2 || history[1].Formula.String() != "2h" || history[1].Steps[1].After != time.Second {
			t.Errorf("the history is %+v (error %v)", history, err)
		}
	}},
	{"a policy that cannot be set is refused with the reason, and nothing is stored", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		large := "delay max(0s" + strings.Repeat(", n", 200) + ")"
		falldue.Handle(q, falldue.NewKind[noteArgs]("large", falldue.KindConfig{Policy: parsePolicy(t, large)}), func(context.Context, falldue.Task[noteArgs]) error { return nil })
		good := parseOverride(t, "2 * original")
		for _, c := range []struct {
			subject  falldue.Subject
			override backoff.Override
			options  ops.OverrideOptions
			says     string
		}{
			{falldue.Subject{}, good, ops.OverrideOptions{}, "the Subject is empty"},
			{falldue.Subject{Kind: "k"}, backoff.Override{}, ops.OverrideOptions{}, "the override has no clause"},
			{falldue.Subject{Kind: "k"}, good, ops.OverrideOptions{Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, "must be from"},
			{falldue.Subject{Kind: "k"}, good, ops.OverrideOptions{Steps: []ops.OverrideStep{{Formula: good}}}, "a step with After 0s"},
			{falldue.Subject{Policy: "0123456789abcdef"}, good, ops.OverrideOptions{}, "not in the policies table"},
			{falldue.Subject{Kind: "large"}, parseOverride(t, "original + original + original + original"), ops.OverrideOptions{}, `kind large under the override "original + original + original + original"`},
		} {
			if err := ops.New(q).SetPolicy(t.Context(), c.subject, c.override, c.options); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: error %v, want %q", c.subject, err, c.says)
			}
		}
		if history, err := ops.New(q).OverrideHistory(t.Context()); err != nil || len(history) != 0 {
			t.Errorf("stored are %+v (error %v)", history, err)
		}
	}},
}
