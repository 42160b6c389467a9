package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// why returns why a task runs or not.
func (b backlog) why(i *ops.Ops, id int64) ops.Why {
	b.t.Helper()
	w, err := i.Why(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

// released waits until nobody has claimed a task. A worker that stops may have been about to
// claim it, and gives it back.
func (b backlog) released(id int64) {
	b.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := b.queue.Task(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if info.ClaimedBy == "" {
			return
		}
		<-tick.C
	}
}

// conditionOf returns the condition of a type.
func conditionOf[C ops.Condition](t *testing.T, w ops.Why) (found C) {
	t.Helper()
	for _, c := range w.Conditions {
		if c, ok := c.(C); ok {
			return c
		}
	}
	t.Fatalf("of task %d there is no %T: %+v", w.Task.ID, found, w.Conditions)
	return found
}

// onlyReason checks that a condition is the only one that does not hold, and returns it.
func onlyReason[C ops.Condition](t *testing.T, w ops.Why) C {
	t.Helper()
	for _, c := range w.Conditions {
		if _, it := c.(C); c.Holds() == it {
			t.Errorf("of task %d %T holds %v: %+v", w.Task.ID, c, c.Holds(), c)
		}
	}
	if w.Runnable() {
		t.Errorf("task %d is runnable", w.Task.ID)
	}
	return conditionOf[C](t, w)
}

// near reports whether two moments are no further apart than the test has lasted, but for the precision of clocks.
func (b backlog) near(one, other time.Time) bool {
	return one.Sub(other).Abs() < time.Since(b.began)+time.Second
}

// TestWhyWithoutWorkers: what the tables alone say of a task.
func TestWhyWithoutWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(map[string]backoff.Policy{"mail": parse(t, "delay 10m; attempts 5")})
		if _, err := i.Why(t.Context(), 99); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("why of no task: error %v", err)
		}

		id := b.enqueue("mail")
		if c := onlyReason[ops.WhyWorker](t, b.why(i, id)); len(c.Workers)+len(c.InQueue)+len(c.OfKind) != 0 {
			t.Errorf("the workers are %+v", c)
		}
		if next := b.why(i, id).Next(); !next.IsZero() {
			t.Errorf("without a worker it can run at %v", next)
		}
		for state, end := range map[falldue.State]string{falldue.StateDead: "state = 'dead'", falldue.StateDone: "state = 'done'", falldue.StateCancelled: "state = 'cancelled'"} {
			id := b.enqueue("mail")
			b.db.MustExec(b.db.Rebind("update falldue_tasks set "+end+" where id = ?"), id)
			w := b.why(i, id)
			if c := onlyReason[ops.WhyState](t, w); c.State != state || c.Since.IsZero() || len(w.Conditions) != 1 || !w.Next().IsZero() {
				t.Errorf("a %s task: %+v", state, w.Conditions)
			}
		}
	})
}

// blocking returns a handler that sends the ids of its tasks to began and runs until end is
// closed, or until its context ends: its task has been edited, or the test has failed.
func blocking(began chan<- int64, end <-chan struct{}) func(context.Context, falldue.Task[json.RawMessage]) error {
	return func(ctx context.Context, task falldue.Task[json.RawMessage]) error {
		began <- task.ID
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestWhy has a case for each reason why a task that a worker handles does not run.
func TestWhy(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		began, end := make(chan int64, 10), make(chan struct{})
		block := blocking(began, end)
		policy := backoff.ParseDeferred("delay 1h; attempts 5")
		stop := b.start(falldue.Config{Concurrency: 20}, func(q *falldue.Queue) {
			handle(falldue.KindConfig{Policy: policy}, block, "mail")(q)
			handle(falldue.KindConfig{Policy: policy, Limits: []falldue.Limit{falldue.AtMost(1)}}, block, "charge")(q)
			handle(falldue.KindConfig{Policy: policy, Limits: []falldue.Limit{falldue.Rate(1, time.Hour).PerKey()}}, block, "call")(q)
			handle(falldue.KindConfig{Policy: policy, Limits: []falldue.Limit{falldue.InOrder()}}, block, "sync")(q)
			handle(falldue.KindConfig{Policy: policy, Limits: []falldue.Limit{falldue.InOrder().HaltOnDeath()}}, func(context.Context, falldue.Task[json.RawMessage]) error {
				return falldue.Discard(errors.New("never"))
			}, "halting")(q)
		})
		defer stop()
		defer close(end)
		list := b.workers(i, "the worker", announced(1))
		begins := func(want int64) {
			t.Helper()
			if got := <-began; got != want {
				t.Fatalf("task %d runs, want %d", got, want)
			}
		}

		t.Run("it runs", func(t *testing.T) {
			id := b.enqueue("mail")
			begins(id)
			w := b.why(i, id)
			if c := onlyReason[ops.WhyClaim](t, w); c.Worker != list[0].ID || c.Lost || !c.Live || !c.Until.After(w.Task.Now) || c.Started.IsZero() || len(w.Conditions) != 2 {
				t.Errorf("%+v", w.Conditions)
			}
		})
		t.Run("it is scheduled", func(t *testing.T) {
			w := b.why(i, b.enqueue("mail", falldue.EnqueueOptions{Delay: 2 * time.Hour}))
			if c := onlyReason[ops.WhyDue](t, w); !c.Scheduled || c.Snoozed || !b.near(w.Next(), w.Task.Now.Add(2*time.Hour)) {
				t.Errorf("%+v, next %v", c, w.Next())
			}
		})
		t.Run("it expires", func(t *testing.T) {
			own := falldue.EnqueueOptions{Delay: 2 * time.Hour, ExpireAt: time.Now().Add(3 * time.Hour)}
			for name, opts := range map[string]falldue.EnqueueOptions{
				"policy": {Delay: 2 * time.Hour, Policy: backoff.Constant(time.Hour).WithStartWithin(2 * time.Hour)}, "own": own,
			} {
				w := b.why(i, b.enqueue("mail", opts))
				want := opts.ExpireAt
				if want.IsZero() {
					want = w.Task.UpdatedAt.Add(2 * time.Hour)
				}
				if c := conditionOf[ops.WhyExpiry](t, w); !c.Holds() || c.Own == opts.ExpireAt.IsZero() || !b.near(c.At, want) {
					t.Errorf("%s: %+v, want %v", name, c, want)
				}
			}
			id := b.enqueue("mail", own)
			b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 1, fence = 1 where id = ?"), id)
			for _, c := range b.why(i, id).Conditions {
				if c.Name() == "expiry" {
					t.Errorf("a task that has started has %+v", c)
				}
			}
		})
		t.Run("it waits for its policy", func(t *testing.T) {
			id := b.enqueue("mail", falldue.EnqueueOptions{Delay: time.Hour})
			b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 2, fence = 2, updated_at = created_at where id = ?"), id)
			b.db.MustExec(b.db.Rebind("insert into falldue_attempts (task_id, fence, attempt, outcome, worker, finished_at, duration_us, error) select id, 2, 2, 'retried', 'w', created_at, 0, 'no' from falldue_tasks where id = ?"), id)
			b.shift("attempts", "finished_at", 7*time.Second, "attempt = 2")
			w := b.why(i, id)
			c := onlyReason[ops.WhyDue](t, w)
			if len(c.Rules) != 1 || c.Rules[0].Delay != time.Hour || c.Rules[0].Policy != "delay 1h; attempts 5" || len(c.Rules[0].Workers) != 1 || c.Jitter != 7*time.Second || !b.near(w.Next(), w.Task.Now.Add(time.Hour)) {
				t.Errorf("%+v", c)
			}
			if c := conditionOf[ops.WhyAttempts](t, w); c.Attempts != 2 || c.Most != 5 {
				t.Errorf("%+v", c)
			}
		})
		t.Run("it is snoozed", func(t *testing.T) {
			id := b.enqueue("mail", falldue.EnqueueOptions{Delay: 3 * time.Hour})
			b.db.MustExec(b.db.Rebind("update falldue_tasks set state = 'snoozed', fence = 1, attempts = 1 where id = ?"), id)
			w := b.why(i, id)
			if c := onlyReason[ops.WhyDue](t, w); !c.Snoozed || c.Scheduled || !b.near(w.Next(), w.Task.Now.Add(3*time.Hour)) {
				t.Errorf("%+v", c)
			}
		})
		t.Run("no attempt is left", func(t *testing.T) {
			id := b.enqueue("mail", falldue.EnqueueOptions{Delay: time.Hour, MaxAttempts: 2})
			b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 2, fence = 2 where id = ?"), id)
			if c := conditionOf[ops.WhyAttempts](t, b.why(i, id)); c.Holds() || c.Most != 2 {
				t.Errorf("%+v", c)
			}
		})
		t.Run("its worker has died", func(t *testing.T) {
			id := b.enqueue("mail", falldue.EnqueueOptions{Delay: time.Hour})
			b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 1, fence = 1, claimed_by = 'gone', updated_at = created_at where id = ?"), id)
			w := b.why(i, id)
			if onlyReason[ops.WhyDue](t, w); !b.near(w.Next(), w.Task.Now.Add(time.Hour)) {
				t.Errorf("%+v", w.Conditions)
			}
			if c := conditionOf[ops.WhyClaim](t, w); c.Worker != "gone" || !c.Lost || c.Live {
				t.Errorf("%+v", c)
			}
		})
		t.Run("it is paused", func(t *testing.T) {
			until := time.Now().Add(time.Hour)
			for _, p := range []struct {
				subject falldue.Subject
				until   time.Time
			}{{falldue.Subject{Kind: "mail", Key: "paused"}, time.Time{}}, {falldue.Subject{Key: "paused"}, until}, {falldue.Subject{Kind: "call"}, until}} {
				if err := b.queue.Pause(t.Context(), p.subject, falldue.PauseOptions{Until: p.until, Note: falldue.Note{Who: "ann", Why: "closed"}}); err != nil {
					t.Fatal(err)
				}
			}
			// The worker may not have read the pauses yet.
			id := b.enqueue("mail", falldue.EnqueueOptions{Key: "paused", Delay: time.Minute})
			c := conditionOf[ops.WhyPause](t, b.why(i, id))
			if c.Holds() || len(c.Pauses) != 2 || c.Pauses[0].Who != "ann" || c.Pauses[0].Why != "closed" || !c.Until().IsZero() {
				t.Errorf("%+v", c)
			}
			if err := b.queue.Resume(t.Context(), falldue.Subject{Kind: "mail", Key: "paused"}); err != nil {
				t.Fatal(err)
			}
			w := b.why(i, id)
			if c := conditionOf[ops.WhyPause](t, w); len(c.Pauses) != 1 || !b.near(c.Until(), until) || !b.near(w.Next(), until) {
				t.Errorf("%+v, next %v", c, w.Next())
			}
			if err := b.queue.Resume(t.Context(), falldue.Subject{Kind: "call"}); err != nil {
				t.Fatal(err)
			}
		})
		t.Run("a limit admits no more", func(t *testing.T) {
			first := b.enqueue("charge")
			begins(first)
			w := b.why(i, b.enqueue("charge"))
			if c := onlyReason[ops.WhyLimit](t, w); c.Limit != "AtMost(1)" || c.Owner != "kind charge" || c.PerKey || c.Room != 0 || len(c.Taken) != 1 || c.Taken[0] != first || !w.Next().IsZero() {
				t.Errorf("%+v", c)
			}
		})
		t.Run("a rate admits no more", func(t *testing.T) {
			first := b.enqueue("call", falldue.EnqueueOptions{Key: "seven"})
			begins(first)
			w := b.why(i, b.enqueue("call", falldue.EnqueueOptions{Key: "seven"}))
			if c := onlyReason[ops.WhyLimit](t, w); c.Limit != "Rate(1, 1h0m0s).PerKey()" || len(c.Taken) != 1 || c.Taken[0] != first || !b.near(w.Next(), w.Task.Now.Add(time.Hour)) {
				t.Errorf("%+v, next %v", c, w.Next())
			}
			w = b.why(i, b.enqueue("call", falldue.EnqueueOptions{Key: "eight", Delay: time.Hour}))
			if c := conditionOf[ops.WhyLimit](t, w); c.Room != 1 || !c.Holds() {
				t.Errorf("of another key: %+v", c)
			}
		})
		t.Run("another one of its sequence comes first", func(t *testing.T) {
			first := b.enqueue("sync", falldue.EnqueueOptions{Key: "nine"})
			begins(first)
			second := b.enqueue("sync", falldue.EnqueueOptions{Key: "nine"})
			if c := onlyReason[ops.WhySequence](t, b.why(i, second)); c.Next != first || !c.Runs {
				t.Errorf("%+v", c)
			}
			// It has failed, and waits for its next attempt.
			b.db.MustExec(b.db.Rebind("update falldue_tasks set claimed_by = '' where id = ?"), first)
			if c := onlyReason[ops.WhySequence](t, b.why(i, second)); c.Next != first || c.Runs {
				t.Errorf("%+v", c)
			}
			if c := conditionOf[ops.WhySequence](t, b.why(i, first)); !c.Holds() || c.Next != first {
				t.Errorf("%+v", c)
			}
		})
		t.Run("a dead one halts its sequence", func(t *testing.T) {
			first := b.enqueue("halting", falldue.EnqueueOptions{Key: "ten"})
			for state := falldue.StateOpen; state != falldue.StateDead; {
				info, err := b.queue.Task(t.Context(), first)
				if err != nil {
					t.Fatal(err)
				}
				state = info.State
			}
			if c := onlyReason[ops.WhySequence](t, b.why(i, b.enqueue("halting", falldue.EnqueueOptions{Key: "ten"}))); c.Next != first || c.Runs || !c.Halted {
				t.Errorf("%+v", c)
			}
		})
		t.Run("no live worker handles its kind in its queue", func(t *testing.T) {
			if c := onlyReason[ops.WhyWorker](t, b.why(i, b.enqueue("report"))); len(c.InQueue) != 1 || len(c.OfKind) != 0 {
				t.Errorf("%+v", c)
			}
			if c := onlyReason[ops.WhyWorker](t, b.why(i, b.enqueue("mail", falldue.EnqueueOptions{Queue: "images"}))); len(c.InQueue) != 0 || len(c.OfKind) != 1 {
				t.Errorf("%+v", c)
			}
		})
		t.Run("its policy cannot be read", func(t *testing.T) {
			own := parse(t, "delay 30m")
			id := b.enqueue("mail", falldue.EnqueueOptions{Policy: own, Delay: time.Hour})
			if c := conditionOf[ops.WhyPolicy](t, b.why(i, id)); !c.Holds() || c.Text != "delay 30m" {
				t.Errorf("%+v", c)
			}
			b.db.MustExec("delete from falldue_policies")
			w := b.why(i, id)
			if c := conditionOf[ops.WhyPolicy](t, w); c.Holds() || c.Err == nil || !w.Next().IsZero() {
				t.Errorf("%+v", c)
			}
		})
		t.Run("its policy is changed", func(t *testing.T) {
			slower, err := backoff.ParseOverride("delay 4 * original")
			if err != nil {
				t.Fatal(err)
			}
			if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, slower); err != nil {
				t.Fatal(err)
			}
			id := b.enqueue("mail", falldue.EnqueueOptions{Delay: time.Hour})
			b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 1, fence = 1, updated_at = created_at where id = ?"), id)
			w := b.why(i, id)
			if c := onlyReason[ops.WhyDue](t, w); len(c.Rules) != 1 || c.Rules[0].Delay != 4*time.Hour || c.Override == nil || !b.near(w.Next(), w.Task.Now.Add(4*time.Hour)) {
				t.Errorf("%+v", c)
			}
			if err := ops.New(b.queue).ClearPolicy(t.Context(), falldue.Subject{Kind: "mail"}); err != nil {
				t.Fatal(err)
			}
			if c := onlyReason[ops.WhyDue](t, b.why(i, id)); c.Rules[0].Delay != time.Hour || c.Override != nil {
				t.Errorf("%+v", c)
			}
		})
		t.Run("its policy is not known", func(t *testing.T) {
			id := b.enqueue("report")
			b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 1, fence = 1 where id = ?"), id)
			if c := conditionOf[ops.WhyDue](t, b.why(i, id)); c.Holds() || len(c.Rules) != 0 {
				t.Errorf("%+v", c)
			}
		})
		t.Run("somebody has locked its row", func(t *testing.T) {
			if s, err := dialect.Probe(t.Context(), b.db); err != nil || !s.Caps.SkipLocked {
				t.Skipf("it cannot skip locked rows (error %v)", err)
			}
			id := b.enqueue("report")
			if c := conditionOf[ops.WhyLock](t, b.why(i, id)); c.Locked || !c.Known {
				t.Errorf("%+v", c)
			}
			holder := b.db.MustBegin()
			defer func() { _ = holder.Rollback() }()
			holder.MustExec(b.db.Rebind("select id from falldue_tasks where id = ? for update"), id)
			if c := conditionOf[ops.WhyLock](t, b.why(i, id)); !c.Locked || !c.Known || c.Holds() {
				t.Errorf("%+v", c)
			}
		})
		t.Run("others come before it", func(t *testing.T) {
			for range 3 {
				b.enqueue("letter")
			}
			id := b.enqueue("letter")
			if c := conditionOf[ops.WhyRank](t, b.why(i, id)); c.Ahead != 3 || c.More {
				t.Errorf("%+v", c)
			}
			receipts, err := falldue.NewKind[json.RawMessage]("letter", falldue.KindConfig{}).EnqueueMany(t.Context(), b.queue, make([]json.RawMessage, 10_000))
			if err != nil {
				t.Fatal(err)
			}
			if c := conditionOf[ops.WhyRank](t, b.why(i, receipts[len(receipts)-1].ID)); c.Ahead != 10_000 || !c.More {
				t.Errorf("%+v", c)
			}
		})
	})
}

// TestWhyOfAWorkerThatStops: it runs what it has begun, and starts nothing.
func TestWhyOfAWorkerThatStops(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		began, end := make(chan struct{}), make(chan struct{})
		stop := b.start(falldue.Config{}, handle(falldue.KindConfig{}, func(context.Context, falldue.Task[json.RawMessage]) error {
			close(began)
			<-end
			return nil
		}, "mail"))
		b.workers(i, "the worker", announced(1))
		b.enqueue("mail")
		<-began
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		list := b.workers(i, "the worker to stop", func(list []ops.Worker) bool { return len(list) == 1 && list[0].Stopping })
		id := b.enqueue("mail")
		b.released(id)
		if c := onlyReason[ops.WhyWorker](t, b.why(i, id)); len(c.Stopping) != 1 || c.Stopping[0] != list[0].ID {
			t.Errorf("%+v", c)
		}
		if queues, err := i.Queues(t.Context()); err != nil || len(ops.Unhandled(queues, list)) != 1 {
			t.Errorf("nobody handles %+v, error %v", ops.Unhandled(queues, list), err)
		}
		close(end)
		<-stopped
		b.workers(i, "the worker to be gone", announced(0))
	})
}
