package queuetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

// shortLease is short, so that a case can wait for its end. A busy machine may miss one
// heartbeat of it, but not two.
const shortLease = 3 * time.Second

var leaseCases = []conformanceCase{
	{"a handler that runs longer than a lease keeps its task", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[noteArgs]("long", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		const lease = 2 * shortLease
		q := f.queue(t, falldue.Config{Lease: lease, DoneRetention: time.Hour})
		rival := f.queueOn(t, f.open(t), falldue.Config{})
		falldue.Handle(rival, k, func(context.Context, falldue.Task[noteArgs]) error { return nil })
		started := make(chan falldue.RunInfo, 1)
		release := make(chan struct{}, 1)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			if task.Attempt > 1 {
				return nil
			}
			started <- task.RunInfo
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		startWorker(t, q)
		for range 5 { // a machine that stalls for longer than a lease loses it
			id := enqueue(t, q, k, noteArgs{})
			receive(t, started, "the handler to start")
			stop := startWorker(t, rival)
			start := readTask(t, q, id)
			// After three heartbeats the lease has been extended by more than its length.
			waitFor(t, q, id, "extended", func(i falldue.TaskInfo) bool {
				return i.UpdatedAt.Sub(start.UpdatedAt) > lease || i.Fence > 1
			})
			release <- struct{}{}
			done := waitForState(t, q, id, falldue.StateDone)
			stop()
			if done.Fence == 1 {
				return
			}
			select {
			case <-release:
			default:
			}
		}
		t.Error("each of five tasks ran again")
	}},
	inCallersTx("a task whose worker has vanished runs again after its lease ends, and the vanished worker cannot settle it", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[noteArgs]("orphaned", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		firstDB := f.open(t)
		first := f.queueOn(t, firstDB, falldue.Config{Lease: shortLease, Name: "vanishing"})
		started, release, late := make(chan falldue.RunInfo, 1), make(chan struct{}), make(chan error, 1)
		falldue.Handle(first, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			started <- task.RunInfo
			<-release // even after its context has ended
			tx, err := f.begin(context.WithoutCancel(ctx), nil)
			if err != nil {
				late <- err
				return err
			}
			late <- task.DoneTx(context.WithoutCancel(ctx), tx.Tx)
			return tx.Rollback()
		})
		id := enqueue(t, first, k, noteArgs{})
		stop := startWorker(t, first)
		if m := receive(t, started, "the first attempt"); m.Attempt != 1 {
			t.Errorf("attempt %d, want 1", m.Attempt)
		}
		_ = firstDB.Close() // for the database, this worker has vanished

		second := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		ran := make(chan falldue.RunInfo, 1)
		falldue.Handle(second, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.RunInfo
			return task.SetResult("second")
		})
		startWorker(t, second)
		m := receive(t, ran, "the task to run again")
		if m.Attempt != 2 || m.Fence != 2 {
			t.Errorf("run again as attempt %d, claim %d; want 2 and 2", m.Attempt, m.Fence)
		}
		waitForState(t, second, id, falldue.StateDone)
		close(release)
		if err := receive(t, late, "the late settle"); !errors.Is(err, falldue.ErrLeaseLost) {
			t.Errorf("the late settle returned %v, want ErrLeaseLost", err)
		}
		stop()
		info := readTask(t, second, id)
		if info.State != falldue.StateDone || string(info.Result) != `"second"` || info.Attempts != 2 {
			t.Errorf("the task ended as %+v", info)
		}
		list, err := second.Attempts(t.Context(), id)
		if err != nil || len(list) != 1 || list[0].Outcome != "lost" || !strings.HasPrefix(list[0].Worker, "vanishing/") {
			t.Errorf("recorded is %+v (error %v), want the lost attempt", list, err)
		}
	}),
	{"a task that may run again immediately after a loss waits for the end of its lease, and not for its policy's delay", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[noteArgs]("urgent", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h"), ImmediateLostRetries: 1})
		firstDB := f.open(t)
		first := f.queueOn(t, firstDB, falldue.Config{Lease: shortLease})
		started, release := make(chan falldue.RunInfo, 1), make(chan struct{})
		end := sync.OnceFunc(func() { close(release) })
		defer end()
		falldue.Handle(first, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			started <- task.RunInfo
			<-release
			return nil
		})
		id := enqueue(t, first, k, noteArgs{})
		stop := startWorker(t, first)
		receive(t, started, "the first attempt")
		_ = firstDB.Close() // before a slow machine reads the task: the first worker cannot claim it again
		if info := readTask(t, f.queue(t, falldue.Config{}), id); info.State != falldue.StateSnoozed || info.ClaimedBy == "" {
			t.Errorf("while its first attempt runs, the task is %s, claimed by %q", info.State, info.ClaimedBy)
		}

		second := f.queue(t, falldue.Config{})
		again := make(chan falldue.RunInfo, 1)
		falldue.Handle(second, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			again <- task.RunInfo
			<-release
			return errFlaky
		})
		startWorker(t, second)
		if m := receive(t, again, "the task to run again"); m.Attempt != 2 || m.Fence != 2 {
			t.Errorf("run again as attempt %d, claim %d; want 2 and 2", m.Attempt, m.Fence)
		}
		info := readTask(t, second, id)
		if due := info.Due(k.Config().Policy); info.State != falldue.StateOpen || due.Sub(info.UpdatedAt) != time.Hour {
			t.Errorf("if its second attempt is lost too, the task, now %s, is due %v after its lease; want 1h", info.State, due.Sub(info.UpdatedAt))
		}
		end()
		stop()
		waitFor(t, second, id, "open after a failure", func(i falldue.TaskInfo) bool {
			return i.State == falldue.StateOpen && i.ClaimedBy == "" && i.Attempts == 2
		})
		if list, err := second.Attempts(t.Context(), id); err != nil || len(list) != 2 || list[0].Outcome != falldue.OutcomeLost {
			t.Errorf("recorded is %+v (error %v), want a lost attempt and a failed one", list, err)
		}
	}},
	{"a task whose last attempt is lost becomes dead and does not run again", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[noteArgs]("last.chance", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 1")})
		firstDB := f.open(t)
		first := f.queueOn(t, firstDB, falldue.Config{Lease: shortLease})
		started, release := make(chan struct{}, 1), make(chan struct{})
		falldue.Handle(first, k, func(context.Context, falldue.Task[noteArgs]) error {
			started <- struct{}{}
			<-release
			return nil
		})
		id := enqueue(t, first, k, noteArgs{})
		stop := startWorker(t, first)
		receive(t, started, "the only attempt")
		_ = firstDB.Close()
		second := f.queue(t, falldue.Config{})
		falldue.Handle(second, k, func(context.Context, falldue.Task[noteArgs]) error {
			t.Error("the task ran again after its last attempt")
			return nil
		})
		startWorker(t, second)
		if info := waitForState(t, second, id, falldue.StateDead); info.Attempts != 1 || !strings.Contains(info.LastError, "lease") {
			t.Errorf("dead with %d attempts, error %q", info.Attempts, info.LastError)
		}
		close(release)
		stop()
	}},
	{"Cancel cancels the context of a running handler, and the task stays cancelled", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[noteArgs]("called.off", falldue.KindConfig{})
		q := f.queue(t, falldue.Config{Lease: time.Second})
		started, ended := make(chan struct{}, 1), make(chan error, 1)
		falldue.Handle(q, k, func(ctx context.Context, _ falldue.Task[noteArgs]) error {
			started <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		receive(t, started, "the handler to start")
		if err := q.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, ended, "the handler's context to end"); !errors.Is(err, falldue.ErrLeaseLost) {
			t.Errorf("the cause is %v, want ErrLeaseLost", err)
		}
		if info := readTask(t, q, id); info.State != falldue.StateCancelled {
			t.Errorf("the task is %s", info.State)
		}
		if err := q.Cancel(t.Context(), id); !errors.Is(err, falldue.ErrWrongState) {
			t.Errorf("cancelling it twice returned %v, want ErrWrongState", err)
		}
	}},
}
