package queuetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var leaseCases = []conformance{
	{"a task whose worker vanishes is run again after its lease, and the vanished worker cannot settle it", func(t *testing.T, b *bench) {
		k := falldue.NewKind[note]("orphaned", falldue.KindConfig{Policy: policy(t, "delay 0")})
		cut := b.open(t)
		first := b.queueOn(t, cut, falldue.Config{Lease: time.Second, Name: "vanishing"})
		held, let, late := make(chan falldue.TaskMeta, 1), make(chan struct{}), make(chan error, 1)
		falldue.Handle(first, k, func(ctx context.Context, task falldue.Task[note]) error {
			held <- task.TaskMeta
			<-let // whatever its context says
			tx := b.db.MustBeginTx(context.WithoutCancel(ctx), nil)
			late <- task.DoneTx(context.WithoutCancel(ctx), tx)
			return tx.Rollback()
		})
		id := enqueue(t, first, k, note{})
		stop := work(t, first)
		if m := receive(t, held, "the first attempt"); m.Attempt != 1 {
			t.Errorf("attempt %d, want 1", m.Attempt)
		}
		_ = cut.Close() // for the database, this worker is gone

		second := b.queue(t, falldue.Config{DoneRetention: time.Hour})
		ran := make(chan falldue.TaskMeta, 1)
		falldue.Handle(second, k, func(_ context.Context, task falldue.Task[note]) error {
			ran <- task.TaskMeta
			return task.SetResult("second")
		})
		work(t, second)
		m := receive(t, ran, "the task to run again")
		if m.Attempt != 2 || m.Fence != 2 {
			t.Errorf("run again as attempt %d, claim %d; want 2 and 2", m.Attempt, m.Fence)
		}
		untilState(t, second, id, falldue.Done)
		close(let)
		if err := receive(t, late, "the late settle"); !errors.Is(err, falldue.ErrLeaseLost) {
			t.Errorf("the late settle returned %v, want ErrLeaseLost", err)
		}
		stop()
		info := task(t, second, id)
		if info.State != falldue.Done || string(info.Result) != `"second"` || info.Attempts != 2 {
			t.Errorf("the task ended as %+v", info)
		}
		list, err := second.Attempts(t.Context(), id)
		if err != nil || len(list) != 1 || list[0].Outcome != "lost" || !strings.HasPrefix(list[0].Worker, "vanishing/") {
			t.Errorf("recorded is %+v (error %v), want the lost attempt", list, err)
		}
	}},
	{"a task whose last attempt is lost is dead, not run once more", func(t *testing.T, b *bench) {
		k := falldue.NewKind[note]("last.chance", falldue.KindConfig{Policy: policy(t, "delay 0; attempts 1")})
		cut := b.open(t)
		first := b.queueOn(t, cut, falldue.Config{Lease: time.Second})
		held, let := make(chan struct{}, 1), make(chan struct{})
		falldue.Handle(first, k, func(context.Context, falldue.Task[note]) error {
			held <- struct{}{}
			<-let
			return nil
		})
		id := enqueue(t, first, k, note{})
		stop := work(t, first)
		receive(t, held, "the only attempt")
		_ = cut.Close()
		second := b.queue(t, falldue.Config{})
		falldue.Handle(second, k, func(context.Context, falldue.Task[note]) error {
			t.Error("the task ran beyond its limit")
			return nil
		})
		work(t, second)
		if info := untilState(t, second, id, falldue.Dead); info.Attempts != 1 || !strings.Contains(info.LastError, "lease") {
			t.Errorf("dead with %d attempts, error %q", info.Attempts, info.LastError)
		}
		close(let)
		stop()
	}},
	{"a handler that runs for longer than a lease keeps its task", func(t *testing.T, b *bench) {
		k := falldue.NewKind[note]("long", falldue.KindConfig{Policy: policy(t, "delay 0")})
		const lease = 3 * time.Second // a busy machine may skip a heartbeat, and must not skip two
		q := b.queue(t, falldue.Config{Lease: lease, DoneRetention: time.Hour})
		rival := b.queueOn(t, b.open(t), falldue.Config{})
		falldue.Handle(rival, k, func(context.Context, falldue.Task[note]) error {
			t.Error("another worker ran the task")
			return nil
		})
		held := make(chan falldue.TaskMeta, 1)
		let := make(chan struct{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[note]) error {
			held <- task.TaskMeta
			select {
			case <-let:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		id := enqueue(t, q, k, note{})
		work(t, q)
		receive(t, held, "the handler to start")
		work(t, rival)
		start := task(t, q, id)
		// Three heartbeats: the end of the lease moves on, past its first.
		until(t, q, id, "extended", func(i falldue.TaskInfo) bool {
			return i.UpdatedAt.Sub(start.UpdatedAt) > lease && i.Fence == 1
		})
		close(let)
		if info := untilState(t, q, id, falldue.Done); info.Attempts != 1 {
			t.Errorf("done after %d attempts, want 1", info.Attempts)
		}
	}},
	{"cancelling a running task ends its handler's context, and it stays cancelled", func(t *testing.T, b *bench) {
		k := falldue.NewKind[note]("called.off", falldue.KindConfig{})
		q := b.queue(t, falldue.Config{Lease: time.Second})
		held, ended := make(chan struct{}, 1), make(chan error, 1)
		falldue.Handle(q, k, func(ctx context.Context, _ falldue.Task[note]) error {
			held <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
		id := enqueue(t, q, k, note{})
		work(t, q)
		receive(t, held, "the handler to start")
		if err := q.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, ended, "the handler's context to end"); !errors.Is(err, falldue.ErrLeaseLost) {
			t.Errorf("the cause is %v, want ErrLeaseLost", err)
		}
		if info := task(t, q, id); info.State != falldue.Cancelled {
			t.Errorf("the task is %s", info.State)
		}
		if err := q.Cancel(t.Context(), id); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("cancelling it twice returned %v, want ErrNotFound", err)
		}
	}},
}
