package queuetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var handlerCases = []conformanceCase{
	{"a panic is a failed attempt, and its stack is recorded", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("panicking", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 2")})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			if task.Attempt == 1 {
				panic(errFlaky)
			}
			panic("not an error value")
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		info := waitForState(t, q, id, falldue.StateDead)
		if info.LastError != "panic: not an error value" {
			t.Errorf("last error %q", info.LastError)
		}
		list, err := q.Attempts(t.Context(), id)
		if err != nil || len(list) != 2 {
			t.Fatalf("the recorded attempts are %+v (error %v), want 2", list, err)
		}
		for _, a := range list {
			if !strings.HasPrefix(a.Error, "panic: ") || !strings.Contains(a.Stack, "handler.go") {
				t.Errorf("recorded as %q with the stack %q", a.Error, a.Stack)
			}
		}
	}},
	{"a handler that exceeds the timeout of its kind fails with an error that says so", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("slow", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 1"), Timeout: 20 * time.Millisecond})
		falldue.Handle(q, k, func(ctx context.Context, _ falldue.Task[noteArgs]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		if info := waitForState(t, q, id, falldue.StateDead); !strings.Contains(info.LastError, falldue.ErrTimeout.Error()) {
			t.Errorf("last error %q", info.LastError)
		}
	}},
	inCallersTx("a handler that ignores the end of its context is given up: its task runs again in its slot, with its own timeout and the handler's stack", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Concurrency: 1, StuckTimeout: 10 * time.Millisecond})
		k := falldue.NewKind[noteArgs]("stuck", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 50"), DoneRetention: time.Hour})
		release, returned := make(chan struct{}), make(chan error, 1)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			if task.Attempt > 1 {
				return nil // on a busy machine even this may take too long, and is tried again
			}
			<-release
			tx, err := f.begin(context.Background(), nil)
			if err == nil {
				err = errors.Join(task.DoneTx(context.Background(), tx.Tx), tx.Rollback())
			}
			returned <- err
			return nil
		})
		id := enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Timeout: 10 * time.Millisecond})
		startWorker(t, q)
		info := waitForState(t, q, id, falldue.StateDone)
		if close(release); info.Attempts < 2 || info.Timeout != 10*time.Millisecond || len(info.Metadata) != 0 {
			t.Errorf("the task is %+v", info)
		}
		if err := receive(t, returned, "the stuck handler to return"); !errors.Is(err, falldue.ErrLeaseLost) {
			t.Errorf("its DoneTx returns %v, want ErrLeaseLost", err)
		}
		list, err := q.Attempts(t.Context(), id)
		if err != nil || len(list) != info.Attempts-1 {
			t.Fatalf("the recorded attempts are %+v (error %v), want %d", list, err, info.Attempts-1)
		}
		slices.SortFunc(list, func(a, b falldue.Attempt) int { return a.Attempt - b.Attempt })
		if !strings.HasPrefix(list[0].Error, falldue.ErrStuck.Error()) || !strings.Contains(list[0].Error, falldue.ErrTimeout.Error()) || !strings.Contains(list[0].Stack, "queuetest/handler.go") {
			t.Errorf("the first recorded attempt is %+v", list[0])
		}
	}),
	{"a payload that cannot be decoded is a failed attempt, and the error names the type", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		texts := falldue.NewKind[string]("retyped", falldue.KindConfig{})
		id := enqueue(t, q, texts, "not a number")
		numbers := falldue.NewKind[int]("retyped", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 1")})
		falldue.Handle(q, numbers, func(context.Context, falldue.Task[int]) error { return nil })
		startWorker(t, q)
		if info := waitForState(t, q, id, falldue.StateDead); !strings.Contains(info.LastError, "int") {
			t.Errorf("last error %q", info.LastError)
		}
	}},
	{"done tasks are deleted, or kept with their result if DoneRetention is set", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[noteArgs]("finished", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		fail := func(_ context.Context, task falldue.Task[noteArgs]) error {
			if task.Attempt == 1 {
				return errFlaky
			}
			return task.SetResult(map[string]int{"answer": 42})
		}
		q := f.queue(t, falldue.Config{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			if err := fail(ctx, task); !errors.Is(err, falldue.ErrInvalid) {
				return err
			}
			return nil // a result of a task that is not kept is refused
		})
		id := enqueue(t, q, k, noteArgs{})
		stop := startWorker(t, q)
		waitForDeletion(t, q, id)
		stop()
		if list, err := q.Attempts(t.Context(), id); err != nil || len(list) != 0 {
			t.Errorf("of the deleted task %+v is left (error %v)", list, err)
		}
		keeping := f.queueOn(t, f.open(t), falldue.Config{DoneRetention: time.Hour})
		falldue.Handle(keeping, k, fail)
		id = enqueue(t, keeping, k, noteArgs{})
		startWorker(t, keeping)
		info := waitForState(t, keeping, id, falldue.StateDone)
		if string(info.Result) != `{"answer":42}` || info.LastError != errFlaky.Error() || info.ClaimedBy != "" {
			t.Errorf("the kept task is %+v", info)
		}
		if list, err := keeping.Attempts(t.Context(), id); err != nil || len(list) != 1 {
			t.Errorf("the recorded attempts of the kept task are %+v (error %v), want 1", list, err)
		}
	}},
	{"done and dead tasks are deleted when their retention ends", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Second, DeadRetention: time.Second})
		k := falldue.NewKind[bool]("passing", falldue.KindConfig{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[bool]) error {
			if task.Args {
				return nil
			}
			return falldue.Discard(errFlaky)
		})
		done, dead := enqueue(t, q, k, true), enqueue(t, q, k, false)
		startWorker(t, q)
		waitForDeletion(t, q, done)
		waitForDeletion(t, q, dead)
		if list, err := q.Attempts(t.Context(), dead); err != nil || len(list) != 0 {
			t.Errorf("of the deleted task %+v is left (error %v)", list, err)
		}
	}},
	{"each kind keeps its tasks as long as it says, for each state", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour, DeadRetention: time.Second})
		kinds := map[string]falldue.KindConfig{
			"as.config":    {},
			"kept":         {DoneRetention: time.Hour, DeadRetention: falldue.Forever},
			"deleted":      {DoneRetention: falldue.DeleteImmediately, DeadRetention: time.Second, CancelledRetention: time.Hour},
			"short":        {DoneRetention: time.Second, DeadRetention: time.Hour, CancelledRetention: time.Second},
			"as.dead.ones": {DeadRetention: time.Hour},
			"none":         {DeadRetention: falldue.DeleteImmediately, CancelledRetention: falldue.DeleteImmediately},
		}
		stays := map[string]map[falldue.State]bool{
			"as.config":    {falldue.StateDone: true},
			"kept":         {falldue.StateDone: true, falldue.StateDead: true, falldue.StateCancelled: true},
			"deleted":      {falldue.StateCancelled: true},
			"short":        {falldue.StateDead: true},
			"as.dead.ones": {falldue.StateDone: true, falldue.StateDead: true, falldue.StateCancelled: true},
			"none":         {falldue.StateDone: true},
		}
		ids := map[string]map[falldue.State]int64{}
		for name, cfg := range kinds {
			k := falldue.NewKind[bool](name, cfg)
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[bool]) error {
				if task.Args {
					return nil
				}
				return falldue.Discard(errFlaky)
			})
			ids[name] = map[falldue.State]int64{
				falldue.StateDone: enqueue(t, q, k, true), falldue.StateDead: enqueue(t, q, k, false), falldue.StateCancelled: enqueue(t, q, k, true),
			}
			if err := q.Cancel(t.Context(), ids[name][falldue.StateCancelled]); err != nil {
				t.Fatal(err)
			}
		}
		startWorker(t, q)
		for name, states := range ids {
			for state, id := range states {
				if !stays[name][state] {
					waitForDeletion(t, q, id)
				}
			}
		}
		for name, states := range ids {
			for state, id := range states {
				if stays[name][state] {
					waitForState(t, q, id, state)
				}
			}
		}
	}},
	{"of a kind with MaxDone, the last done tasks stay", func(t *testing.T, f *fixture) {
		const most, all = 3, 8
		q := f.queue(t, falldue.Config{Concurrency: 1, DeadRetention: time.Second}) // so that a worker cleans every second
		k := falldue.NewKind[int]("bounded", falldue.KindConfig{MaxDone: most})
		falldue.Handle(q, k, func(context.Context, falldue.Task[int]) error { return nil })
		startWorker(t, q)
		var ids []int64
		for i := range all {
			ids = append(ids, enqueue(t, q, k, i))
			waitForState(t, q, ids[i], falldue.StateDone)
		}
		for _, id := range ids[:all-most] {
			waitForDeletion(t, q, id)
		}
		for _, id := range ids[all-most:] {
			waitForState(t, q, id, falldue.StateDone)
		}
	}},
	{"of many failed attempts, the first and the last ones are recorded", func(t *testing.T, f *fixture) {
		const fails, first, last = 60, 10, 40
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[int]("hopeless", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[int]) error {
			if task.Attempt <= fails {
				return errFlaky
			}
			return nil
		})
		id := enqueue(t, q, k, 1)
		startWorker(t, q)
		waitForState(t, q, id, falldue.StateDone)
		list, err := q.Attempts(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []int
		for _, a := range list {
			got = append(got, a.Attempt)
		}
		for n := 1; n <= fails; n++ {
			if n <= first || n > fails-last {
				want = append(want, n)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("recorded are the attempts %d, want %d", got, want)
		}
	}},
	{"a worker keeps finished tasks of a kind that another worker handles", func(t *testing.T, f *fixture) {
		end := func(_ context.Context, task falldue.Task[bool]) error {
			if task.Args {
				return nil
			}
			return falldue.Discard(errFlaky)
		}
		kept := falldue.NewKind[bool]("kept", falldue.KindConfig{DoneRetention: time.Hour, DeadRetention: falldue.Forever})
		q := f.queue(t, falldue.Config{})
		falldue.Handle(q, kept, end)
		startWorker(t, q)
		want := map[int64]falldue.State{enqueue(t, q, kept, true): falldue.StateDone, enqueue(t, q, kept, false): falldue.StateDead}
		for id, state := range want {
			waitForState(t, q, id, state)
		}
		other := f.queueOn(t, f.open(t), falldue.Config{DoneRetention: time.Second, DeadRetention: time.Second})
		passing := falldue.NewKind[bool]("passing", falldue.KindConfig{})
		falldue.Handle(other, passing, end)
		startWorker(t, other)
		// What goes last is deleted in a round that began after the one that deleted what went first.
		for range 2 {
			done, dead := enqueue(t, other, passing, true), enqueue(t, other, passing, false)
			waitForDeletion(t, other, done)
			waitForDeletion(t, other, dead)
		}
		for id, state := range want {
			waitForState(t, q, id, state)
		}
	}},
	inCallersTx("DoneTx settles a task in the same transaction as the handler's own writes", func(t *testing.T, f *fixture) {
		f.db.MustExec("create table effects (task bigint not null, attempt int not null)")
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("effective", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		insert := f.db.Rebind("insert into effects (task, attempt) values (?, ?)")
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			tx, err := f.begin(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(ctx, insert, task.ID, task.Attempt); err != nil {
				return err
			}
			if err := task.DoneTx(ctx, tx.Tx); err != nil {
				return err
			}
			switch task.Attempt {
			case 1:
				return errFlaky // rolled back: neither the write nor the settlement happens
			case 2:
				if err := tx.Commit(); err != nil {
					return err
				}
				return errFlaky // has no effect: the task is done
			}
			t.Errorf("attempt %d ran after the task was done", task.Attempt)
			return nil
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		info := waitForState(t, q, id, falldue.StateDone)
		if info.Attempts != 2 {
			t.Errorf("done after %d attempts, want 2", info.Attempts)
		}
		var attempts []int
		if err := f.db.Select(&attempts, "select attempt from effects"); err != nil || len(attempts) != 1 || attempts[0] != 2 {
			t.Errorf("the effects are of attempts %v (error %v), want only the second", attempts, err)
		}
	}),
	inCallersTx("a handler that called DoneTx has failed unless that transaction has committed", func(t *testing.T, f *fixture) {
		f.db.MustExec("create table effects (task bigint not null, attempt int not null)")
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("forgetful", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		insert := f.db.Rebind("insert into effects (task, attempt) values (?, ?)")
		settle := func(ctx context.Context, task falldue.Task[noteArgs]) *Transaction {
			tx, err := f.begin(ctx, nil)
			if err == nil {
				_, err = tx.ExecContext(ctx, insert, task.ID, task.Attempt)
			}
			if err == nil {
				err = task.DoneTx(ctx, tx.Tx)
			}
			if err != nil {
				panic(err)
			}
			return tx
		}
		ways := []func(ctx context.Context, task falldue.Task[noteArgs]) error{
			func(ctx context.Context, task falldue.Task[noteArgs]) error { // the commit is forgotten
				tx := settle(ctx, task)
				defer func() { _ = tx.Rollback() }()
				return nil
			},
			func(ctx context.Context, task falldue.Task[noteArgs]) error { // the commit fails, and its error is ignored
				tx := settle(ctx, task)
				_ = tx.Rollback()
				if err := tx.Commit(); err == nil {
					t.Error("a transaction that was rolled back has committed")
				}
				return nil
			},
			func(ctx context.Context, task falldue.Task[noteArgs]) error { // DoneTx fails, and its error is ignored
				tx, err := f.begin(ctx, nil)
				if err != nil {
					return err
				}
				_ = tx.Rollback()
				if err := task.DoneTx(ctx, tx.Tx); err == nil {
					t.Error("DoneTx has settled a task in a transaction that was rolled back before")
				}
				return nil
			},
			func(ctx context.Context, task falldue.Task[noteArgs]) error { // twice
				_ = settle(ctx, task).Rollback()
				_ = settle(ctx, task).Rollback()
				return nil
			},
			func(ctx context.Context, task falldue.Task[noteArgs]) error {
				tx := settle(ctx, task)
				defer func() { _ = tx.Rollback() }()
				panic("after DoneTx")
			},
			func(ctx context.Context, task falldue.Task[noteArgs]) error { // the second commits
				_ = settle(ctx, task).Rollback()
				return settle(ctx, task).Commit()
			},
		}
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error { return ways[task.Attempt-1](ctx, task) })
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		if info := waitForState(t, q, id, falldue.StateDone); info.Attempts != len(ways) {
			t.Errorf("done after %d attempts, want %d", info.Attempts, len(ways))
		}
		past, err := q.Attempts(t.Context(), id)
		if err != nil || len(past) != len(ways)-1 {
			t.Fatalf("%d attempts have failed, error %v; want %d", len(past), err, len(ways)-1)
		}
		for _, a := range past {
			want := falldue.ErrNotCommitted.Error()
			if a.Attempt == 5 {
				want = "panic: after DoneTx"
			}
			if a.Error != want {
				t.Errorf("attempt %d has failed with %q, want %q", a.Attempt, a.Error, want)
			}
		}
		var attempts []int
		if err := f.db.Select(&attempts, "select attempt from effects"); err != nil || len(attempts) != 1 || attempts[0] != len(ways) {
			t.Errorf("the effects are of attempts %v (error %v), want only the last", attempts, err)
		}
	}),
	inCallersTx("a handler can enqueue the next task in the transaction that settles its own", func(t *testing.T, f *fixture) {
		// With one handler at a time the next task starts after its predecessor has returned.
		q := f.queue(t, falldue.Config{Concurrency: 1})
		k := falldue.NewKind[int]("chain", falldue.KindConfig{})
		ended := make(chan int, 10)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
			tx, err := f.begin(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if task.Args > 0 {
				if _, err := k.EnqueueTx(ctx, q, tx.Tx, task.Args-1); err != nil {
					return err
				}
			}
			if err := task.DoneTx(ctx, tx.Tx); err != nil {
				return err
			}
			if err := tx.Commit(); err != nil {
				return err
			}
			ended <- task.Args
			return nil
		})
		enqueue(t, q, k, 3)
		startWorker(t, q)
		for want := 3; want >= 0; want-- {
			if got := receive(t, ended, "the next task"); got != want {
				t.Errorf("ran %d, want %d", got, want)
			}
		}
	}),
	{"Run returns the errors of registrations", func(t *testing.T, f *fixture) {
		none := func(context.Context, falldue.Task[noteArgs]) error { return nil }
		good := falldue.NewKind[noteArgs]("good", falldue.KindConfig{})
		for name, set := range map[string]func(q *falldue.Queue){
			"no handler": func(*falldue.Queue) {},
			"handled twice": func(q *falldue.Queue) {
				k := falldue.NewKind[noteArgs]("twice", falldue.KindConfig{})
				falldue.Handle(q, k, none)
				falldue.Handle(q, k, none)
			},
			"no kind":  func(q *falldue.Queue) { falldue.Handle(q, falldue.Kind[noteArgs]{}, none) },
			"bad name": func(q *falldue.Queue) { falldue.Handle(q, falldue.NewKind[noteArgs](" ", falldue.KindConfig{}), none) },
			"bad priority": func(q *falldue.Queue) {
				falldue.Handle(q, falldue.NewKind[noteArgs]("p", falldue.KindConfig{Priority: 40_000}), none)
			},
			"bad timeout": func(q *falldue.Queue) {
				falldue.Handle(q, falldue.NewKind[noteArgs]("t", falldue.KindConfig{Timeout: -1}), none)
			},
			"no function":   func(q *falldue.Queue) { falldue.Handle(q, good, nil) },
			"nil around it": func(q *falldue.Queue) { falldue.Handle(q, good, none, nil) },
			"nil around all": func(q *falldue.Queue) {
				falldue.Handle(q, good, none)
				q.Use(nil)
			},
			"nil around enqueues": func(q *falldue.Queue) {
				falldue.Handle(q, good, none)
				q.UseEnqueue(nil)
				if receipts, err := good.EnqueueMany(t.Context(), q, []noteArgs{{}}); !errors.Is(err, falldue.ErrInvalid) {
					t.Errorf("nil around enqueues: stored %v (error %v), want ErrInvalid", receipts, err)
				}
			},
		} {
			q := f.queue(t, falldue.Config{})
			set(q)
			if err := q.Run(t.Context()); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("%s: Run returned %v, want ErrInvalid", name, err)
			}
		}
	}},
	{"missing tables are reported as ErrNotMigrated", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Prefix: "elsewhere_"})
		k := falldue.NewKind[noteArgs]("lost", falldue.KindConfig{})
		if _, err := k.Enqueue(t.Context(), q, noteArgs{}); !errors.Is(err, falldue.ErrNotMigrated) {
			t.Errorf("Enqueue returned %v, want ErrNotMigrated", err)
		}
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return nil })
		if err := q.Run(t.Context()); !errors.Is(err, falldue.ErrNotMigrated) {
			t.Errorf("Run returned %v, want ErrNotMigrated", err)
		}
	}},
}
