package queuetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var handlerCases = []conformance{
	{"a panic is a failed attempt, kept with its stack", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{})
		k := falldue.NewKind[note]("panicking", falldue.KindConfig{Policy: policy(t, "delay 0; attempts 2")})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[note]) error {
			if task.Attempt == 1 {
				panic(errFlaky)
			}
			panic("no error value")
		})
		id := enqueue(t, q, k, note{})
		work(t, q)
		info := untilState(t, q, id, falldue.Dead)
		if info.LastError != "panic: no error value" {
			t.Errorf("last error %q", info.LastError)
		}
		list, err := q.Attempts(t.Context(), id)
		if err != nil || len(list) != 2 {
			t.Fatalf("recorded are %+v (error %v)", list, err)
		}
		for _, a := range list {
			if !strings.HasPrefix(a.Error, "panic: ") || !strings.Contains(a.Stack, "handler.go") {
				t.Errorf("recorded as %q with the stack %q", a.Error, a.Stack)
			}
		}
	}},
	{"a handler that runs into its kind's timeout fails, and the error says so", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{})
		k := falldue.NewKind[note]("slow", falldue.KindConfig{Policy: policy(t, "delay 0; attempts 1"), Timeout: 20 * time.Millisecond})
		falldue.Handle(q, k, func(ctx context.Context, _ falldue.Task[note]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		id := enqueue(t, q, k, note{})
		work(t, q)
		if info := untilState(t, q, id, falldue.Dead); !strings.Contains(info.LastError, falldue.ErrTimeout.Error()) {
			t.Errorf("last error %q", info.LastError)
		}
	}},
	{"a payload that does not decode is a failure that names the type", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{})
		texts := falldue.NewKind[string]("retyped", falldue.KindConfig{})
		id := enqueue(t, q, texts, "not a number")
		numbers := falldue.NewKind[int]("retyped", falldue.KindConfig{Policy: policy(t, "delay 0; attempts 1")})
		falldue.Handle(q, numbers, func(context.Context, falldue.Task[int]) error { return nil })
		work(t, q)
		if info := untilState(t, q, id, falldue.Dead); !strings.Contains(info.LastError, "int") {
			t.Errorf("last error %q", info.LastError)
		}
	}},
	{"done tasks are deleted, or kept with their result when told to", func(t *testing.T, b *bench) {
		k := falldue.NewKind[note]("finished", falldue.KindConfig{Policy: policy(t, "delay 0")})
		fail := func(_ context.Context, task falldue.Task[note]) error {
			if task.Attempt == 1 {
				return errFlaky
			}
			return task.SetResult(map[string]int{"answer": 42})
		}
		q := b.queue(t, falldue.Config{})
		falldue.Handle(q, k, fail)
		id := enqueue(t, q, k, note{})
		stop := work(t, q)
		untilGone(t, q, id)
		stop()
		if list, err := q.Attempts(t.Context(), id); err != nil || len(list) != 0 {
			t.Errorf("of the deleted task %+v is left (error %v)", list, err)
		}
		keeping := b.queueOn(t, b.open(t), falldue.Config{DoneRetention: time.Hour})
		falldue.Handle(keeping, k, fail)
		id = enqueue(t, keeping, k, note{})
		work(t, keeping)
		info := untilState(t, keeping, id, falldue.Done)
		if string(info.Result) != `{"answer":42}` || info.LastError != errFlaky.Error() || info.ClaimedBy != "" {
			t.Errorf("kept is %+v", info)
		}
		if list, err := keeping.Attempts(t.Context(), id); err != nil || len(list) != 1 {
			t.Errorf("of the kept task %+v is recorded (error %v)", list, err)
		}
	}},
	{"kept tasks go when their time is over", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{DoneRetention: time.Second, DeadRetention: time.Second})
		k := falldue.NewKind[bool]("passing", falldue.KindConfig{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[bool]) error {
			if task.Args {
				return nil
			}
			return falldue.Discard(errFlaky)
		})
		done, dead := enqueue(t, q, k, true), enqueue(t, q, k, false)
		work(t, q)
		untilGone(t, q, done)
		untilGone(t, q, dead)
		if list, err := q.Attempts(t.Context(), dead); err != nil || len(list) != 0 {
			t.Errorf("of the deleted task %+v is left (error %v)", list, err)
		}
	}},
	{"what a handler writes in its own transaction commits with the end of its task, or not at all", func(t *testing.T, b *bench) {
		b.db.MustExec("create table effects (task bigint not null, attempt int not null)")
		q := b.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[note]("effective", falldue.KindConfig{Policy: policy(t, "delay 0")})
		insert := b.db.Rebind("insert into effects (task, attempt) values (?, ?)")
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[note]) error {
			tx, err := b.db.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(ctx, insert, task.ID, task.Attempt); err != nil {
				return err
			}
			if err := task.DoneTx(ctx, tx); err != nil {
				return err
			}
			switch task.Attempt {
			case 1:
				return errFlaky // rolled back: neither the effect nor the end
			case 2:
				if err := tx.Commit(); err != nil {
					return err
				}
				return errFlaky // too late: it is done
			}
			t.Errorf("attempt %d ran after the task was done", task.Attempt)
			return nil
		})
		id := enqueue(t, q, k, note{})
		work(t, q)
		info := untilState(t, q, id, falldue.Done)
		if info.Attempts != 2 {
			t.Errorf("done after %d attempts, want 2", info.Attempts)
		}
		var attempts []int
		if err := b.db.Select(&attempts, "select attempt from effects"); err != nil || len(attempts) != 1 || attempts[0] != 2 {
			t.Errorf("the effects are of attempts %v (error %v), want of the second alone", attempts, err)
		}
	}},
	{"a handler can enqueue its next task in the transaction that ends its own", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("chain", falldue.KindConfig{})
		ended := make(chan int, 10)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
			tx, err := b.db.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if task.Args > 0 {
				if _, err := k.EnqueueTx(ctx, q, tx, task.Args-1, nil); err != nil {
					return err
				}
			}
			if err := task.DoneTx(ctx, tx); err != nil {
				return err
			}
			if err := tx.Commit(); err != nil {
				return err
			}
			ended <- task.Args
			return nil
		})
		enqueue(t, q, k, 3)
		work(t, q)
		for want := 3; want >= 0; want-- {
			if got := receive(t, ended, "the next link"); got != want {
				t.Errorf("ran %d, want %d", got, want)
			}
		}
	}},
	{"errors about registrations come from Run", func(t *testing.T, b *bench) {
		none := func(context.Context, falldue.Task[note]) error { return nil }
		for name, set := range map[string]func(q *falldue.Queue){
			"no handler": func(*falldue.Queue) {},
			"handled twice": func(q *falldue.Queue) {
				k := falldue.NewKind[note]("twice", falldue.KindConfig{})
				falldue.Handle(q, k, none)
				falldue.Handle(q, k, none)
			},
			"bad name": func(q *falldue.Queue) { falldue.Handle(q, falldue.NewKind[note](" ", falldue.KindConfig{}), none) },
			"bad priority": func(q *falldue.Queue) {
				falldue.Handle(q, falldue.NewKind[note]("p", falldue.KindConfig{Priority: 40_000}), none)
			},
			"bad timeout": func(q *falldue.Queue) {
				falldue.Handle(q, falldue.NewKind[note]("t", falldue.KindConfig{Timeout: -1}), none)
			},
		} {
			q := b.queue(t, falldue.Config{})
			set(q)
			if err := q.Run(t.Context()); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("%s: Run returned %v, want ErrInvalid", name, err)
			}
		}
	}},
	{"missing tables are named as such", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{Prefix: "elsewhere_"})
		k := falldue.NewKind[note]("lost", falldue.KindConfig{})
		if _, err := k.Enqueue(t.Context(), q, note{}, nil); !errors.Is(err, falldue.ErrNotMigrated) {
			t.Errorf("Enqueue returned %v, want ErrNotMigrated", err)
		}
		falldue.Handle(q, k, func(context.Context, falldue.Task[note]) error { return nil })
		if err := q.Run(t.Context()); !errors.Is(err, falldue.ErrNotMigrated) {
			t.Errorf("Run returned %v, want ErrNotMigrated", err)
		}
	}},
}
