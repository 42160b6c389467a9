package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/steps"
)

// stepsOf returns the recorded steps of a task.
func stepsOf(t *testing.T, q *falldue.Queue, id int64) []steps.Step {
	t.Helper()
	list, err := steps.Of(t.Context(), q, id)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var stepCases = []conformanceCase{
	{"a step that has succeeded does not run again, and steps are deleted with their task", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("stepwise", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 2")})
		ran, results := make(chan string, 10), make(chan noteArgs, 10)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			first, err := steps.Do(ctx, task, "first", func(context.Context) (noteArgs, error) {
				ran <- "first"
				return noteArgs{Text: "ü \"1\""}, nil
			})
			if err != nil {
				return err
			}
			results <- first
			second, err := steps.Do(ctx, task, "second", func(context.Context) (*noteArgs, error) {
				ran <- fmt.Sprint("second ", task.Attempt)
				if task.Args.Text == "fails" || task.Attempt == 1 {
					return nil, errFlaky
				}
				return nil, nil
			})
			if second != nil {
				t.Errorf("the result of the second step is %+v", second)
			}
			return err
		})
		startWorker(t, q)
		id := enqueue(t, q, k, noteArgs{Text: "fails"})
		waitForState(t, q, id, falldue.StateDead)
		list := stepsOf(t, q, id)
		if len(list) != 2 || list[0].Name != "first" || !list[0].Done || list[0].Fence != 1 || string(list[0].Result) != `{"text":"ü \"1\""}` || list[0].UpdatedAt.Before(list[0].StartedAt) ||
			list[1].Name != "second" || list[1].Done || list[1].Fence != 2 || list[1].Result != nil || list[1].Number != 2 || list[1].Crashes != 0 {
			t.Errorf("the recorded steps are %+v", list)
		}
		if info := readTask(t, q, id); info.LastError != `step "second": flaky` {
			t.Errorf("last error %q", info.LastError)
		}
		if err := q.Retry(t.Context(), id); err != nil { // continues behind the first step
			t.Fatal(err)
		}
		waitFor(t, q, id, "dead again", func(i falldue.TaskInfo) bool { return i.State == falldue.StateDead && i.Fence == 4 })
		if err := q.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		done := enqueue(t, q, k, noteArgs{})
		waitForDeletion(t, q, done)
		close(ran)
		close(results)
		var order []string
		for s := range ran {
			order = append(order, s)
		}
		if want := []string{"first", "second 1", "second 2", "second 1", "second 2", "first", "second 1", "second 2"}; !slices.Equal(order, want) {
			t.Errorf("the functions ran in the order %q, want %q", order, want)
		}
		for r := range results {
			if r.Text != "ü \"1\"" {
				t.Errorf("the first step returned %+v", r)
			}
		}
		var left int
		if err := f.db.Get(&left, "select count(*) from falldue_steps"); err != nil || left != 0 {
			t.Errorf("%d steps are left (error %v)", left, err)
		}
	}},
	{"a worker that lost its lease records no step, and the lost run is counted in its step", func(t *testing.T, f *fixture) {
		// The first worker's handler is busy, so that the second one claims the task again.
		first, second := f.queueOn(t, f.open(t), falldue.Config{Concurrency: 1, ShutdownTimeout: -1}), f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("stepwise", falldue.KindConfig{Policy: parsePolicy(t, "delay 0"), DoneRetention: time.Hour})
		begun, again, refused := make(chan struct{}), make(chan struct{}), make(chan error, 2)
		falldue.Handle(first, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			_, err := steps.Do(ctx, task, "transcode", func(context.Context) (string, error) {
				close(begun)
				<-again
				return "of the lost run", nil
			})
			refused <- err
			_, err = steps.Do(context.WithoutCancel(ctx), task, "upload", func(context.Context) (string, error) {
				t.Error("a step began in the run that was lost")
				return "", nil
			})
			refused <- err
			<-ctx.Done()
			return err
		})
		falldue.Handle(second, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			_, err := steps.Do(ctx, task, "transcode", func(context.Context) (string, error) {
				close(again)
				for range 2 {
					if err := receive(t, refused, "the lost run to be refused"); !errors.Is(err, falldue.ErrLeaseLost) {
						t.Errorf("the lost run may record its step: %v", err)
					}
				}
				return "of the second run", nil
			})
			return err
		})
		startWorker(t, first)
		id := enqueue(t, first, k, noteArgs{})
		receive(t, begun, "the first run")
		f.endLeases(t, fmt.Sprintf("id = %d", id))
		startWorker(t, second)
		waitForState(t, second, id, falldue.StateDone)
		if list := stepsOf(t, second, id); len(list) != 1 || string(list[0].Result) != `"of the second run"` || list[0].Fence != 2 || list[0].Crashes != 1 {
			t.Errorf("the recorded steps are %+v", list)
		}
		if list, err := second.Attempts(t.Context(), id); err != nil || len(list) != 1 || !strings.HasSuffix(list[0].Error, ` in step "transcode"`) {
			t.Errorf("the recorded attempts are %+v (error %v)", list, err)
		}
	}},
	{"the step in which the last attempt was lost is named, and counts it", func(t *testing.T, f *fixture) {
		first, second := f.queueOn(t, f.open(t), falldue.Config{Concurrency: 1, ShutdownTimeout: -1}), f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("stepwise", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 1")})
		begun := make(chan struct{})
		falldue.Handle(first, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			_, err := steps.Do(ctx, task, "transcode", func(ctx context.Context) (string, error) {
				close(begun)
				<-ctx.Done()
				return "", ctx.Err()
			})
			return err
		})
		falldue.Handle(second, k, func(context.Context, falldue.Task[noteArgs]) error { return nil })
		startWorker(t, first)
		id := enqueue(t, first, k, noteArgs{})
		receive(t, begun, "the first run")
		f.endLeases(t, fmt.Sprintf("id = %d", id))
		startWorker(t, second)
		if info := waitForState(t, second, id, falldue.StateDead); !strings.HasSuffix(info.LastError, `vanished in step "transcode"`) {
			t.Errorf("last error %q", info.LastError)
		}
		if list := stepsOf(t, second, id); len(list) != 1 || list[0].Crashes != 1 || list[0].Done {
			t.Errorf("the recorded steps are %+v", list)
		}
	}},
	{"a step continues from its cursor when its worker stops, and no attempt is used up", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{ShutdownTimeout: waitTimeout})
		k := falldue.NewKind[noteArgs]("import", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 1"), DoneRetention: time.Hour})
		saved, next := make(chan int), make(chan struct{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			_, err := steps.DoFrom(ctx, task, "rows", func(ctx context.Context, c *steps.Cursor[int]) (string, error) {
				for c.At() < 4 {
					saved <- c.At()
					<-next
					if err := c.Save(ctx, c.At()+1); err != nil {
						return "", err
					}
				}
				return "imported", nil
			})
			return err
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- q.Run(ctx) }()
		id := enqueue(t, q, k, noteArgs{})
		for i := range 2 {
			if at := receive(t, saved, "a row"); at != i {
				t.Fatalf("the row is %d, want %d", at, i)
			}
			if i == 1 {
				cancel()
			}
			next <- struct{}{}
		}
		if err := receive(t, ended, "the worker to stop"); err != nil {
			t.Fatal(err)
		}
		if info := readTask(t, q, id); info.Attempts != 0 || info.State != falldue.StateSnoozed || info.LastError != "" {
			t.Errorf("after the stop the task is %+v", info)
		}
		if list := stepsOf(t, q, id); len(list) != 1 || string(list[0].Cursor) != "2" || list[0].Done {
			t.Errorf("the recorded steps are %+v", list)
		}
		// The queue may run again once it has stopped.
		startWorker(t, q)
		for i := 2; i < 4; i++ {
			if at := receive(t, saved, "a row"); at != i {
				t.Fatalf("the row is %d, want %d", at, i)
			}
			next <- struct{}{}
		}
		waitForState(t, q, id, falldue.StateDone)
		if list := stepsOf(t, q, id); len(list) != 1 || string(list[0].Result) != `"imported"` || list[0].Cursor != nil || list[0].Crashes != 0 {
			t.Errorf("the recorded steps are %+v", list)
		}
	}},
	inCallersTx("what a step writes in its transaction is written exactly once", func(t *testing.T, f *fixture) {
		f.db.MustExec("create table effects (task bigint not null, attempt int not null)")
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("effective", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		insert := f.db.Rebind("insert into effects (task, attempt) values (?, ?)")
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			got, err := steps.DoTx(ctx, task, "credit", func(ctx context.Context, record func(tx falldue.Tx, result int) error) error {
				tx, err := f.begin(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.ExecContext(ctx, insert, task.ID, task.Attempt); err != nil {
					return err
				}
				if err := record(tx.Tx, task.Attempt); err != nil {
					return err
				}
				switch task.Attempt {
				case 1:
					return errFlaky // rolled back
				case 2:
					return nil // rolled back as well
				}
				return tx.Commit()
			})
			if task.Attempt == 2 && !errors.Is(err, steps.ErrNotCommitted) {
				t.Errorf("without a commit: %v", err)
			}
			if err != nil {
				return err
			}
			if got != 3 {
				t.Errorf("attempt %d returns %d, want the result of attempt 3", task.Attempt, got)
			}
			if task.Attempt < 5 {
				return errFlaky
			}
			_, err = steps.DoTx(ctx, task, "end", func(ctx context.Context, record func(tx falldue.Tx, result bool) error) error {
				tx, err := f.begin(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if err := errors.Join(record(tx.Tx, true), task.DoneTx(ctx, tx.Tx)); err != nil {
					return err
				}
				return tx.Commit()
			})
			return err
		})
		id := enqueue(t, q, k, noteArgs{})
		startWorker(t, q)
		if info := waitForState(t, q, id, falldue.StateDone); info.Attempts != 5 {
			t.Errorf("done after %d attempts, want 5", info.Attempts)
		}
		var attempts []int
		if err := f.db.Select(&attempts, "select attempt from effects"); err != nil || !slices.Equal(attempts, []int{3}) {
			t.Errorf("the effects are of attempts %v (error %v), want only the third", attempts, err)
		}
		if list := stepsOf(t, q, id); len(list) != 2 || string(list[0].Result) != "3" || !list[1].Done {
			t.Errorf("the recorded steps are %+v", list)
		}
	}),
}
