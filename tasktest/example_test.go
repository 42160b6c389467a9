package tasktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/tasktest"
)

// exampleT stands for the *testing.T of a test.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (*exampleT) Helper()                  {}
func (*exampleT) Context() context.Context { return context.Background() }
func (t *exampleT) Cleanup(f func())       { t.cleanups = append(t.cleanups, f) }

func (*exampleT) Fatal(args ...any)                 { log.Panic(args...) }
func (*exampleT) Fatalf(format string, args ...any) { log.Panicf(format, args...) }
func (*exampleT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (t *exampleT) end() {
	for _, f := range t.cleanups {
		f()
	}
}

// openDB opens a new SQLite database.
func openDB(t *exampleT) *sqlx.DB {
	folder, err := os.MkdirTemp("", "tasktest-")
	if err != nil {
		log.Panic(err)
	}
	db := sqlx.MustConnect("sqlite", "file:"+filepath.Join(folder, "test.db")+"?_pragma=journal_mode(wal)&_txlock=immediate")
	t.Cleanup(func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	})
	return db
}

// openQueue returns a queue whose tables exist.
func openQueue(db *sqlx.DB) *falldue.Queue {
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	if err := q.Migrate(context.Background()); err != nil {
		log.Panic(err)
	}
	return q
}

var greet = falldue.NewKind[string]("greet", falldue.KindConfig{Policy: backoff.Constant(time.Hour).WithMaxAttempts(4)})

// A handler is called with a task that has been made by hand.
func ExampleNewTask() {
	handle := func(_ context.Context, t falldue.Task[string]) error {
		if t.Args == "" {
			return falldue.Discard(errors.New("no name"))
		}
		return t.SetResult("Hello, " + t.Args)
	}

	task, record := tasktest.NewTask("Ada")
	outcome, _ := tasktest.Asked(handle(context.Background(), task))
	fmt.Println(outcome, string(record.Result()))

	task, _ = tasktest.NewTask("")
	outcome, _ = tasktest.Asked(handle(context.Background(), task))
	fmt.Println(outcome)
	// Output:
	// done "Hello, Ada"
	// discarded
}

// A task of a kind takes a result only if a worker would keep it.
func ExampleNewTaskOf() {
	task, _ := tasktest.NewTaskOf(greet, "Ada", falldue.Config{})
	fmt.Println(task.SetResult("Hello, Ada"))

	task, record := tasktest.NewTaskOf(greet, "Ada", falldue.Config{DoneRetention: time.Hour})
	fmt.Println(task.SetResult("Hello, Ada"), string(record.Result()))
	// Output:
	// falldue: invalid: result of kind "greet": done tasks of the kind are deleted immediately; set KindConfig.DoneRetention or Config.DoneRetention
	// <nil> "Hello, Ada"
}

// The form with Tx sees what a transaction has enqueued.
func ExampleRequireEnqueuedTx() {
	t := &exampleT{} // in a test, its *testing.T
	defer t.end()
	db := openDB(t)
	q := openQueue(db)

	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	if _, err := greet.EnqueueTx(context.Background(), q, tx, "Ada"); err != nil {
		log.Panic(err)
	}
	task := tasktest.RequireEnqueuedTx(t, q, tx, greet, "Ada")
	fmt.Println(task.Kind, "is", task.State, "in queue", task.Queue)
	// Output: greet is open in queue default
}

// Drain runs the tasks that are due, in the goroutine of the test.
func ExampleDrain() {
	t := &exampleT{} // in a test, its *testing.T
	defer t.end()
	q := openQueue(openDB(t))
	falldue.Handle(q, greet, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println("Hello,", t.Args)
		return nil
	})
	if _, err := greet.EnqueueMany(context.Background(), q, []string{"Ada", "Bob"}); err != nil {
		log.Panic(err)
	}
	for _, ran := range tasktest.Drain(t, q) {
		fmt.Println(ran.Kind, "attempt", ran.Attempt, ran.State)
	}
	// Output:
	// Hello, Ada
	// Hello, Bob
	// greet attempt 1 done
	// greet attempt 1 done
}

// RunOne runs one task, and returns what became of it.
func ExampleRunOne() {
	t := &exampleT{} // in a test, its *testing.T
	defer t.end()
	q := openQueue(openDB(t))
	falldue.Handle(q, greet, func(context.Context, falldue.Task[string]) error {
		return falldue.Snooze(time.Hour)
	})
	if _, err := greet.Enqueue(context.Background(), q, "Ada"); err != nil {
		log.Panic(err)
	}
	ran := tasktest.RunOne(t, q)
	fmt.Println(ran.Kind, "attempt", ran.Attempt, "is", ran.State)
	// Output: greet attempt 1 is snoozed
}

// A test of a day of retries doesn't wait: the clock moves from each retry to the next.
func ExampleNewClock() {
	t := &exampleT{} // in a test, its *testing.T
	defer t.end()
	db := openDB(t)
	clock := tasktest.NewClock(t, db)
	q := openQueue(db) // after its clock
	kind := falldue.NewKind[string]("charge", falldue.KindConfig{Policy: backoff.Constant(2 * time.Hour)})
	falldue.Handle(q, kind, func(context.Context, falldue.Task[string]) error { return errors.New("the bank is down") })
	if _, err := kind.Enqueue(context.Background(), q, "Ada"); err != nil {
		log.Panic(err)
	}
	begin, start := time.Now(), clock.Now(t)
	ran := clock.Advance(t, q, 24*time.Hour)
	fmt.Println(len(ran), "attempts in", clock.Now(t).Sub(start).Round(time.Hour))
	fmt.Println("less than a minute of real time:", time.Since(begin) < time.Minute)
	// Output:
	// 12 attempts in 24h0m0s
	// less than a minute of real time: true
}

// The clock jumps over the delay of a task.
func ExampleClock_Jump() {
	t := &exampleT{} // in a test, its *testing.T
	defer t.end()
	db := openDB(t)
	clock := tasktest.NewClock(t, db)
	q := openQueue(db)
	falldue.Handle(q, greet, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println("Hello,", t.Args)
		return nil
	})
	if _, err := greet.Enqueue(context.Background(), q, "Ada", falldue.EnqueueOptions{Delay: time.Hour}); err != nil {
		log.Panic(err)
	}
	fmt.Println(len(tasktest.Drain(t, q)), "tasks are due")
	clock.Jump(t, time.Hour)
	fmt.Println(len(tasktest.Drain(t, q)), "task is due an hour later")
	// Output:
	// 0 tasks are due
	// Hello, Ada
	// 1 task is due an hour later
}

// A day passes on the clock: the task is retried each hour until it is dead.
func ExampleClock_Advance() {
	t := &exampleT{} // in a test, its *testing.T
	defer t.end()
	db := openDB(t)
	clock := tasktest.NewClock(t, db)
	q := openQueue(db)
	falldue.Handle(q, greet, func(context.Context, falldue.Task[string]) error { return errors.New("nobody is there") })
	if _, err := greet.Enqueue(context.Background(), q, "Ada"); err != nil {
		log.Panic(err)
	}
	for _, ran := range clock.Advance(t, q, 24*time.Hour) {
		fmt.Println("attempt", ran.Attempt, ran.State, "after:", ran.Err)
	}
	// Output:
	// attempt 1 open after: nobody is there
	// attempt 2 open after: nobody is there
	// attempt 3 open after: nobody is there
	// attempt 4 dead after: nobody is there
}

// A policy's waits are checked without a database.
func ExampleAssertWait() {
	t := &exampleT{} // in a test, its *testing.T
	tasktest.AssertWait(t, backoff.Zizq(), 2, 31*time.Second, 92*time.Second)
	tasktest.AssertTotal(t, backoff.Constant(time.Minute).WithMaxAttempts(3), time.Minute, 90*time.Second)
	// Output: tasktest: the last attempt of a task comes 2m0s after the first under the policy "delay 1m; attempts 3", want 1m0s to 1m30s
}
