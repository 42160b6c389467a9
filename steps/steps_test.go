package steps_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sealed"
	"github.com/falldue/falldue/steps"
	"github.com/falldue/falldue/tasktest"
)

// handler is a handler of tasks whose argument is a number.
type handler = func(context.Context, falldue.Task[int]) error

var kind = falldue.NewKind[int]("stepwise", falldue.KindConfig{Policy: backoff.Constant(0).WithMaxAttempts(100)})

// open returns a queue whose tasks of the kind fn handles.
func open(t *testing.T, db *sqlx.DB, cfg falldue.Config, fn handler) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	falldue.Handle(q, kind, fn)
	return q
}

func enqueue(t *testing.T, q *falldue.Queue, n int) int64 {
	t.Helper()
	receipt, err := kind.Enqueue(t.Context(), q, n)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

// returns returns a function of a step with a result.
func returns[T any](v T) func(context.Context) (T, error) {
	return func(context.Context) (T, error) { return v, nil }
}

// named runs steps with names one after another; the last one fails.
func named(ctx context.Context, t falldue.Task[int], names ...string) error {
	for i, name := range names {
		_, err := steps.Do(ctx, t, name, func(context.Context) (int, error) {
			if i == len(names)-1 {
				return 0, errors.New("fails")
			}
			return i, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestChangedStepsAreAnError: steps whose order or names have changed since they were recorded do not
// run again, and the error names both.
func TestChangedStepsAreAnError(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		before, after []string
		want          string
	}{
		"the same":                 {[]string{"a", "b", "c"}, []string{"a", "b", "c"}, `step "c": fails`},
		"renamed":                  {[]string{"a", "b", "c"}, []string{"a", "d", "c"}, `steps have changed: step 2 is "d", and is recorded as "b"`},
		"in another order":         {[]string{"a", "b", "c"}, []string{"b", "a", "c"}, `steps have changed: step 1 is "b", and is recorded as "a"`},
		"one more in between":      {[]string{"a", "b", "c"}, []string{"a", "x", "b", "c"}, `steps have changed: step 2 is "x", and is recorded as "b"`},
		"one less":                 {[]string{"a", "b", "c"}, []string{"b", "c"}, `steps have changed: step 1 is "b", and is recorded as "a"`},
		"the failed one renamed":   {[]string{"a", "b", "c"}, []string{"a", "b", "d"}, `step "d": fails`},
		"the failed one divided":   {[]string{"a", "b", "c"}, []string{"a", "b", "x", "y"}, `step "y": fails`},
		"twice the same name":      {[]string{"a", "b", "c"}, []string{"a", "b", "a"}, `step "a" is step 1 and step 3 of one run: names must differ`},
		"a name that is not valid": {[]string{"a"}, []string{"ü"}, `invalid: step: name "ü": must be 1 to 100 of`},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			task, record := tasktest.NewTask(1)
			if err := named(t.Context(), task, c.before...); err == nil || !strings.Contains(err.Error(), "fails") {
				t.Fatal(err)
			}
			recorded := record.Steps()
			err := named(t.Context(), tasktest.NextAttempt(task), c.after...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
			if changed := errors.Is(err, steps.ErrChanged); changed != strings.Contains(c.want, "changed") || changed && !slices.EqualFunc(record.Steps(), recorded, func(a, b steps.Step) bool { return a.Name == b.Name && a.Done == b.Done }) {
				t.Errorf("the error is %v, and recorded is %+v", err, record.Steps())
			}
		})
	}
}

// TestMistakesAreRefused: the errors name the value and the bound, and nothing is recorded.
func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	task, record := tasktest.NewTaskOf(kind, 1, falldue.Config{MaxPayload: 10})
	ctx := t.Context()
	_, nilErr := steps.Do[int](ctx, task, "nil", nil)
	_, nilTxErr := steps.DoTx[int](ctx, task, "nil", nil)
	_, nilFromErr := steps.DoFrom[int, int](ctx, task, "nil", nil)
	_, literal := steps.Do(ctx, falldue.Task[int]{}, "literal", returns(1))
	var within error
	_, err := steps.Do(ctx, task, "outer", func(ctx context.Context) (int, error) {
		_, within = steps.Do(ctx, task, "inner", returns(1))
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, long := steps.Do(ctx, task, "long", returns(strings.Repeat("x", 9)))
	_, invalid := steps.Do(ctx, task, "long", returns(make(chan int)))
	_, cursor := steps.DoFrom(ctx, task, "long", func(ctx context.Context, c *steps.Cursor[string]) (int, error) {
		return 0, c.Save(ctx, strings.Repeat("x", 9))
	})
	_, unrecorded := steps.DoTx(ctx, task, "long", func(context.Context, func(falldue.Tx, int) error) error { return nil })
	_, noTx := steps.DoTx(ctx, task, "long", func(_ context.Context, record func(falldue.Tx, int) error) error { return record(nil, 1) })
	for _, c := range []struct {
		err  error
		want string
	}{
		{nilErr, `step "nil": the function is nil`}, {nilTxErr, `step "nil": the function is nil`}, {nilFromErr, `step "nil": the function is nil`},
		{literal, `step "literal" of a Task that belongs to no worker`},
		{within, `step "inner" begins while step "outer" runs`},
		{long, `step "long": result of 11 bytes: must be at most 10 (Config.MaxPayload)`},
		{invalid, `result of step "long": json: unsupported type: chan int`},
		{cursor, `step "long": cursor of 11 bytes: must be at most 10 (Config.MaxPayload)`},
		{unrecorded, `step "long" returned nil without calling record`},
		{noTx, `step "long": the transaction is nil`},
	} {
		if !errors.Is(c.err, falldue.ErrInvalid) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("the error is %v, want %s", c.err, c.want)
		}
	}
	if list := record.Steps(); len(list) != 2 || !list[0].Done || list[1].Done || list[1].Cursor != nil {
		t.Errorf("recorded is %+v", list)
	}
}

// TestTooManyStepsAreRefused: the step beyond the greatest number does not run.
func TestTooManyStepsAreRefused(t *testing.T) {
	t.Parallel()
	task, record := tasktest.NewTask(1)
	for i := range 1001 {
		_, err := steps.Do(t.Context(), task, fmt.Sprint("item-", i), returns(i))
		if want := i == 1000; want != (err != nil) || want && !strings.Contains(err.Error(), "step 1001: a task can have at most 1000 steps") {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if n := len(record.Steps()); n != 1000 {
		t.Errorf("%d steps are recorded", n)
	}
}

// TestStepsThatFailAreTriedAgain: in the same run, and in the next one, whether or not the handler went on
// without them.
func TestStepsThatFailAreTriedAgain(t *testing.T) {
	t.Parallel()
	task, record := tasktest.NewTask(1)
	var ran []string
	handle := func(ctx context.Context, task falldue.Task[int]) error {
		step := func(name string, fails bool) error {
			_, err := steps.Do(ctx, task, name, func(context.Context) (int, error) {
				if ran = append(ran, name); fails {
					return 0, errors.New("fails")
				}
				return 0, nil
			})
			return err
		}
		for i := range 2 {
			if err := step("again", i == 0); (err != nil) != (i == 0 && task.Attempt == 1) {
				t.Errorf("step again: %v", err)
			}
			if task.Attempt == 2 {
				break
			}
		}
		_ = step("optional", task.Attempt == 1)
		return step("last", task.Attempt == 1)
	}
	if err := handle(t.Context(), task); err == nil {
		t.Error("the first attempt has succeeded")
	}
	if err := handle(t.Context(), tasktest.NextAttempt(task)); err != nil {
		t.Error(err)
	}
	if want := []string{"again", "again", "optional", "last", "optional", "last"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
	if list := record.Steps(); len(list) != 3 || slices.ContainsFunc(list, func(s steps.Step) bool { return !s.Done }) {
		t.Errorf("recorded is %+v", list)
	}
}

// TestStepsThatPanicFail: the next step may begin.
func TestStepsThatPanicFail(t *testing.T) {
	t.Parallel()
	task, record := tasktest.NewTask(1)
	func() {
		defer func() { _ = recover() }()
		_, _ = steps.Do(t.Context(), task, "panics", func(context.Context) (int, error) { panic("no") })
	}()
	if n, err := steps.Do(t.Context(), task, "panics", returns(7)); err != nil || n != 7 {
		t.Errorf("after the panic: %d (error %v)", n, err)
	}
	if list := record.Steps(); len(list) != 1 || !list[0].Done {
		t.Errorf("recorded is %+v", list)
	}
}

// TestStoppingWorkersBeginNoStep: the error releases the task, and steps that are done return their results.
func TestStoppingWorkersBeginNoStep(t *testing.T) {
	t.Parallel()
	task, record := tasktest.NewTask(1)
	if _, err := steps.Do(t.Context(), task, "one", returns(1)); err != nil {
		t.Fatal(err)
	}
	task = tasktest.NextAttempt(task)
	record.Stop()
	if n, err := steps.Do(t.Context(), task, "one", returns(2)); err != nil || n != 1 {
		t.Errorf("the recorded step returns %d (error %v)", n, err)
	}
	if _, err := steps.Do(t.Context(), task, "two", returns(2)); !errors.Is(err, falldue.ErrStopping) {
		t.Errorf("the next step: %v", err)
	}
	if _, err := steps.Do(t.Context(), task, "three", returns(3)); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), `step "three" begins after step "two" failed to begin`) {
		t.Errorf("the step after that: %v", err)
	}
	record.LoseLease()
	task = tasktest.NextAttempt(task)
	if _, err := steps.Do(t.Context(), task, "one", returns(1)); err != nil {
		t.Error(err)
	}
	if _, err := steps.Do(t.Context(), task, "two", returns(2)); !errors.Is(err, falldue.ErrLeaseLost) {
		t.Errorf("without the lease: %v", err)
	}
}

// TestEnginesKeepSteps: each engine keeps results and cursors, sealed, until the task is deleted or begins anew.
func TestEnginesKeepSteps(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		codec, err := sealed.New(sealed.Key{ID: "k", Secret: []byte(strings.Repeat("s", 32))})
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		var end error
		q := open(t, db, falldue.Config{Codec: codec, DoneRetention: time.Hour}, func(ctx context.Context, task falldue.Task[int]) error {
			secret, err := steps.Do(ctx, task, "secret", func(context.Context) (string, error) {
				ran++
				return "secret result", nil
			})
			if err != nil || secret != "secret result" {
				return fmt.Errorf("%q: %w", secret, err)
			}
			_, err = steps.DoFrom(ctx, task, "rows", func(ctx context.Context, c *steps.Cursor[string]) (string, error) {
				switch c.At() {
				case "":
					if err := c.Save(ctx, "secret cursor"); err != nil {
						return "", err
					}
					return "", errors.New("fails")
				case "secret cursor":
					return c.At(), nil
				}
				return "", fmt.Errorf("the cursor is %q", c.At())
			})
			return errors.Join(err, end)
		})
		id := enqueue(t, q, 1)
		if r := tasktest.RunOne(t, q); r.Err == nil || r.Err.Error() != `step "rows": fails` {
			t.Fatalf("the first attempt: %v", r.Err)
		}
		list, err := steps.Of(t.Context(), q, id)
		if err != nil || len(list) != 2 || string(list[0].Result) != `"secret result"` || string(list[1].Cursor) != `"secret cursor"` || list[1].Done {
			t.Fatalf("recorded is %+v (error %v)", list, err)
		}
		var plain int
		if err := db.Get(&plain, "select count(*) from falldue_steps where coalesce(result, step_cursor) is null or "+text(engine, "coalesce(result, step_cursor)")+" like '%secret%'"); err != nil || plain != 0 {
			t.Errorf("%d steps are not sealed (error %v)", plain, err)
		}
		other, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := steps.Of(t.Context(), other, id); err != nil || len(list) != 2 || strings.Contains(string(list[0].Result), "secret") {
			t.Errorf("without the codec: %+v (error %v)", list, err)
		}
		if r := tasktest.RunOne(t, q); r.Err != nil || r.State != falldue.StateDone {
			t.Fatalf("the second attempt: %+v", r)
		}
		if err := q.Retry(t.Context(), id, falldue.RetryOptions{State: falldue.StateDone}); err != nil {
			t.Fatal(err)
		}
		if list, err := steps.Of(t.Context(), q, id); err != nil || len(list) != 0 {
			t.Errorf("a done task that runs again has the steps %+v (error %v)", list, err)
		}
		tasktest.RunOne(t, q)
		end = falldue.Again(0)
		tasktest.RunOne(t, q)
		if list, err := steps.Of(t.Context(), q, id); err != nil || len(list) != 0 || ran != 2 {
			t.Errorf("a task that repeats has the steps %+v after %d runs of the first (error %v)", list, ran, err)
		}
	})
}

// text returns an expression as text.
func text(engine, expr string) string {
	if engine == testdb.Postgres {
		return expr + "::text"
	}
	return expr
}

// TestForget: all steps run again.
func TestForget(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	var forgets error
	ran := 0
	var q *falldue.Queue
	q = open(t, db, falldue.Config{}, func(ctx context.Context, task falldue.Task[int]) error {
		forgets = steps.Forget(ctx, q, task.ID)
		_, err := steps.Do(ctx, task, "one", func(context.Context) (int, error) {
			ran++
			return 0, nil
		})
		return errors.Join(err, errors.New("fails"))
	})
	id := enqueue(t, q, 1)
	tasktest.RunOne(t, q)
	if !errors.Is(forgets, falldue.ErrRunning) {
		t.Errorf("while the task runs: %v", forgets)
	}
	tasktest.RunOne(t, q)
	if ran != 1 {
		t.Fatalf("the step ran %d times", ran)
	}
	if err := steps.Forget(t.Context(), q, id); err != nil {
		t.Fatal(err)
	}
	if tasktest.RunOne(t, q); ran != 2 {
		t.Errorf("the step ran %d times after its record was deleted, want 2", ran)
	}
	if err := steps.Forget(t.Context(), q, id+1); !errors.Is(err, falldue.ErrNotFound) {
		t.Errorf("of no task: %v", err)
	}
	if _, err := steps.Of(t.Context(), q, id+1); !errors.Is(err, falldue.ErrNotFound) {
		t.Errorf("of no task: %v", err)
	}
}
