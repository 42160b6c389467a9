package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// jsonNumber returns a number with the given text in JSON.
func jsonNumber(text string) json.Number { return json.Number(text) }

// failingKind returns a kind whose handler always fails, and a channel that
// receives each attempt.
func failingKind(q *falldue.Queue, p backoff.Policy) (falldue.Kind[noteArgs], <-chan falldue.RunInfo) {
	k := falldue.NewKind[noteArgs]("failing", falldue.KindConfig{Policy: p})
	ran := make(chan falldue.RunInfo, 1000)
	falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
		ran <- task.RunInfo
		return errFlaky
	})
	return k, ran
}

var retryCases = []conformanceCase{
	{"a task with a limit of 3 retries is executed four times, then it is dead, and all its errors are recorded", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		limit := parsePolicy(t, "zizq(retries=3)").MaxAttempts()
		if limit != 4 {
			t.Fatalf("3 retries are %d attempts, want 4", limit)
		}
		k, ran := failingKind(q, parsePolicy(t, "delay 0").WithMaxAttempts(limit))
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		for i := 1; i <= 4; i++ {
			m := receive(t, ran, "an attempt")
			if m.Attempt != i || m.MaxAttempts != 4 {
				t.Errorf("attempt %d of %d, want %d of 4", m.Attempt, m.MaxAttempts, i)
			}
		}
		info := waitForState(t, q, id, falldue.StateDead)
		if info.Attempts != 4 || info.LastError != errFlaky.Error() {
			t.Errorf("dead with %d attempts and error %q", info.Attempts, info.LastError)
		}
		list, err := q.Attempts(t.Context(), id)
		if err != nil || len(list) != 4 {
			t.Fatalf("%d attempts are recorded (error %v), want 4", len(list), err)
		}
		for i, a := range list {
			outcome := falldue.OutcomeRetried
			if i == 3 {
				outcome = falldue.OutcomeDead
			}
			if a.Attempt != i+1 || a.Outcome != outcome || a.Error != errFlaky.Error() || a.Worker == "" || a.FinishedAt.IsZero() {
				t.Errorf("attempt %d is recorded as %+v", i+1, a)
			}
		}
	}},
	{"two retries of one decision run a task once, however soon it ends", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("replayed", falldue.KindConfig{})
		ran := make(chan int64, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Fence
			if task.Fence == 1 {
				return falldue.Discard(errFlaky)
			}
			return nil
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		receive(t, ran, "the first run")
		retry := func(o falldue.RetryOptions) {
			t.Helper()
			if err := q.Retry(t.Context(), id, o); err != nil {
				t.Fatal(err)
			}
			receive(t, ran, "the run after a retry")
			done := waitForState(t, q, id, falldue.StateDone)
			if err := q.Retry(t.Context(), id, o); !errors.Is(err, falldue.ErrWrongState) {
				t.Errorf("the second retry: error %v, want ErrWrongState", err)
			}
			if now := readTask(t, q, id); now.State != falldue.StateDone || now.Fence != done.Fence {
				t.Errorf("after the second retry the task is %+v", now)
			}
		}
		waitForState(t, q, id, falldue.StateDead)
		retry(falldue.RetryOptions{})
		retry(falldue.RetryOptions{State: falldue.StateDone, Fence: new(readTask(t, q, id).Fence)})
	}},
	{"Retry makes a dead task run again, and its attempts are counted from 1", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k, ran := failingKind(q, parsePolicy(t, "delay 0; attempts 2"))
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		for range 2 {
			receive(t, ran, "an attempt")
		}
		waitForState(t, q, id, falldue.StateDead)
		if err := q.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if m := receive(t, ran, "the first attempt after Retry"); m.Attempt != 1 || m.Fence != 3 {
			t.Errorf("after Retry the task runs as attempt %d, claim %d; want 1 and 3", m.Attempt, m.Fence)
		}
		receive(t, ran, "the second attempt")
		waitForState(t, q, id, falldue.StateDead)
		if list, err := q.Attempts(t.Context(), id); err != nil || len(list) != 4 {
			t.Errorf("%d attempts are recorded (error %v), want 4", len(list), err)
		}
	}},
	{"a task is dead when the limit of its policy on elapsed time is reached", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k, ran := failingKind(q, parsePolicy(t, "delay 1.5 * n; elapsed 6s"))
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		info := waitForState(t, q, id, falldue.StateDead)
		// The delays are 1.5, 3, 4.5 s. After the third, 9 s would have elapsed.
		if info.Attempts < 2 || info.Attempts > 3 {
			t.Errorf("dead after %d attempts, want 3, or 2 on a slow machine", info.Attempts)
		}
		if len(ran) != info.Attempts {
			t.Errorf("%d handlers ran for %d attempts", len(ran), info.Attempts)
		}
	}},
	{"a task's own policy and limit on attempts override its kind's", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k, ran := failingKind(q, parsePolicy(t, "delay 1h; attempts 9"))
		own := parsePolicy(t, "delay 0.01s; jitter 0.01s; attempts 3")
		id := enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Policy: own})
		fewer := enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Policy: own, MaxAttempts: 1})
		kinds := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		if info := waitForState(t, q, id, falldue.StateDead); info.Attempts != 3 || info.Policy != own.Key() {
			t.Errorf("dead after %d attempts under policy %q, want 3 under %q", info.Attempts, info.Policy, own.Key())
		}
		if info := waitForState(t, q, fewer, falldue.StateDead); info.Attempts != 1 {
			t.Errorf("the task with one attempt died after %d", info.Attempts)
		}
		waitFor(t, q, kinds, "tried once", func(i falldue.TaskInfo) bool { return i.Attempts == 1 && i.ClaimedBy == "" })
		if n := len(ran); n != 5 {
			t.Errorf("%d attempts ran, want 5", n)
		}
	}},
	{"after a failure a task waits the delay plus a jitter, which is drawn once", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("waits", falldue.KindConfig{Policy: parsePolicy(t, "delay 0.2s; jitter 0.2s")})
		ran := make(chan time.Time, 2)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- time.Now()
			if task.Attempt == 1 {
				return errFlaky
			}
			return nil
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		first, second := receive(t, ran, "the first attempt"), receive(t, ran, "the second")
		if wait := second.Sub(first); wait < 199*time.Millisecond {
			t.Errorf("the second attempt came after %v, want at least the delay of 200 ms", wait)
		}
		waitForState(t, q, id, falldue.StateDone)

		// The jitter is stored in UpdatedAt, from which the delay counts.
		slow := f.queueOn(t, f.open(t), falldue.Config{})
		k, _ = failingKind(slow, parsePolicy(t, "delay 1h; jitter 1h"))
		receipts, err := k.EnqueueMany(t.Context(), slow, make([]noteArgs, 5))
		if err != nil {
			t.Fatal(err)
		}
		startWorker(t, slow)
		drawn := map[time.Duration]bool{}
		for _, r := range receipts {
			info := waitFor(t, slow, r.ID, "waiting", func(i falldue.TaskInfo) bool { return i.Attempts == 1 && i.ClaimedBy == "" })
			list, err := slow.Attempts(t.Context(), r.ID)
			if err != nil || len(list) != 1 {
				t.Fatalf("the recorded attempts are %+v (error %v), want 1", list, err)
			}
			jitter := info.UpdatedAt.Sub(list[0].FinishedAt)
			if jitter < -time.Second || jitter > time.Hour+time.Second {
				t.Errorf("task %d has a jitter of %v, want 0 to 1h", r.ID, jitter)
			}
			drawn[jitter.Round(time.Millisecond)] = true
			if again := readTask(t, slow, r.ID); !again.UpdatedAt.Equal(info.UpdatedAt) {
				t.Errorf("the jitter of task %d changed: UpdatedAt was %v and is %v", r.ID, info.UpdatedAt, again.UpdatedAt)
			}
		}
		if len(drawn) < 2 {
			t.Errorf("all %d tasks have the same jitter: %v", len(receipts), drawn)
		}
	}},
	{"a new policy of a kind applies to its waiting tasks, and no row is written", func(t *testing.T, f *fixture) {
		slow := f.queue(t, falldue.Config{})
		k, ran := failingKind(slow, parsePolicy(t, "delay 1h; attempts 2"))
		id := enqueue(t, slow, k, noteArgs{})
		stop := startWorker(t, slow)
		receive(t, ran, "the first attempt")
		before := waitFor(t, slow, id, "waiting again", func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" && i.Attempts == 1 })
		stop()

		fast := f.queueOn(t, f.open(t), falldue.Config{})
		_, again := failingKind(fast, parsePolicy(t, "delay 1ms; attempts 2"))
		after := readTask(t, fast, id)
		if before.Fence != after.Fence || !before.UpdatedAt.Equal(after.UpdatedAt) || before.Policy != after.Policy {
			t.Errorf("the row changed from %+v to %+v", before, after)
		}
		startWorker(t, fast)
		if m := receive(t, again, "the attempt under the new policy"); m.Attempt != 2 {
			t.Errorf("attempt %d, want 2", m.Attempt)
		}
	}},
	{"when a limit on attempts is lowered, waiting tasks beyond it become dead without running", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k, ran := failingKind(q, parsePolicy(t, "delay if(n < 3, 0, 1h); attempts 5"))
		id := enqueue(t, q, k, noteArgs{})
		stop := startWorker(t, q)
		waitFor(t, q, id, "waiting", func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" && i.Attempts == 3 })
		stop()

		strict := f.queueOn(t, f.open(t), falldue.Config{})
		_, again := failingKind(strict, parsePolicy(t, "delay 0; attempts 2"))
		startWorker(t, strict)
		info := waitForState(t, strict, id, falldue.StateDead)
		if want := errFlaky.Error(); info.Attempts != 3 || info.LastError != want {
			t.Errorf("dead with %d attempts and error %q, want 3 and %q", info.Attempts, info.LastError, want)
		}
		if len(ran) != 3 || len(again) != 0 {
			t.Errorf("%d attempts ran before and %d after, want 3 and 0", len(ran), len(again))
		}
	}},
	{"Snooze does not use up an attempt, and the delay of the policy is not added", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("snoozing", falldue.KindConfig{Policy: parsePolicy(t, "delay if(n == 1, 0, 1h); attempts 2")})
		ran := make(chan falldue.RunInfo, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.RunInfo
			switch {
			case task.Attempt == 1:
				return errFlaky
			case task.Fence < 5:
				return falldue.Snooze(10 * time.Millisecond)
			}
			return nil
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		for i, want := range []int{1, 2, 2, 2, 2} {
			if m := receive(t, ran, "an attempt"); m.Attempt != want || m.Fence != int64(i+1) {
				t.Errorf("run %d is attempt %d, claim %d; want attempt %d", i+1, m.Attempt, m.Fence, want)
			}
		}
		if info := waitForState(t, q, id, falldue.StateDone); info.Attempts != 2 || info.Fence != 5 {
			t.Errorf("done with %d attempts and %d claims, want 2 and 5", info.Attempts, info.Fence)
		}
	}},
	{"Again runs a task that has succeeded once more after its wait, and forgets its failures", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("repeating", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 2")})
		ran := make(chan falldue.TaskInfo, 10)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			info, err := q.Task(ctx, task.ID)
			if err != nil {
				return falldue.Discard(err)
			}
			ran <- info
			switch task.Fence {
			case 1, 3:
				return errFlaky
			case 2, 4:
				return falldue.Again(10 * time.Millisecond)
			}
			return nil
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		var starts []time.Time
		for i, want := range []int{1, 2, 1, 2, 1} {
			m := receive(t, ran, "an attempt")
			if m.Attempts != want || m.Fence != int64(i+1) {
				t.Errorf("run %d is attempt %d, claim %d; want attempt %d", i+1, m.Attempts, m.Fence, want)
			}
			starts = append(starts, m.FirstAttemptedAt)
		}
		if !starts[1].Equal(starts[0]) || !starts[2].After(starts[0]) {
			t.Errorf("first attempts at %v; want a new one after Again, from which the policy's elapsed time counts", starts)
		}
		if info := waitForState(t, q, id, falldue.StateDone); info.Attempts != 1 || info.Fence != 5 {
			t.Errorf("done with %d attempts and %d claims, want 1 and 5", info.Attempts, info.Fence)
		}
		if list, err := q.Attempts(t.Context(), id); err != nil || len(list) != 2 {
			t.Errorf("the records are %+v, error %v; want both failures", list, err)
		}
	}},
	{"RetryAfter replaces the delay of the policy and uses up an attempt", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("retry.after", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h; attempts 3")})
		ran := make(chan int, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Attempt
			return falldue.RetryAfter(10*time.Millisecond, errFlaky)
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		for want := 1; want <= 3; want++ {
			if got := receive(t, ran, "an attempt"); got != want {
				t.Errorf("attempt %d, want %d", got, want)
			}
		}
		if info := waitForState(t, q, id, falldue.StateDead); info.Attempts != 3 || info.LastError != errFlaky.Error() {
			t.Errorf("dead with %d attempts, error %q", info.Attempts, info.LastError)
		}
	}},
	{"Discard makes a task dead immediately", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("hopeless", falldue.KindConfig{})
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return falldue.Discard(errFlaky) })
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		if info := waitForState(t, q, id, falldue.StateDead); info.Attempts != 1 || info.LastError != errFlaky.Error() {
			t.Errorf("dead with %d attempts, error %q", info.Attempts, info.LastError)
		}
	}},
	{"any error text is stored, after invalid characters are replaced and a long text is cut", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[string]("texts", falldue.KindConfig{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
			switch task.Args {
			case "bytes":
				return falldue.Discard(errorText("a\xffb\x00c 'quoted' \"x\" {1,2} \\ 🎈"))
			case "long":
				return falldue.Discard(errorText(strings.Repeat("€", 100_000)))
			}
			return falldue.Discard(nil)
		})
		one, two, three := enqueue(t, q, k, "bytes"), enqueue(t, q, k, "long"), enqueue(t, q, k, "none")
		startWorker(t, q)
		if info := waitForState(t, q, one, falldue.StateDead); info.LastError != "a\ufffdb\ufffdc 'quoted' \"x\" {1,2} \\ 🎈" {
			t.Errorf("stored %q", info.LastError)
		}
		if info := waitForState(t, q, two, falldue.StateDead); !strings.HasPrefix(info.LastError, "€€€") || len(info.LastError) > 20_000 {
			t.Errorf("stored %d bytes", len(info.LastError))
		}
		if info := waitForState(t, q, three, falldue.StateDead); info.LastError == "" {
			t.Error("a discarded task has no last error")
		}
	}},
}

type errorText string

func (e errorText) Error() string { return string(e) }
