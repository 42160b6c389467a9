package falldue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// Task looks up one task by the id in its receipt.
func ExampleQueue_Task() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	receipt, err := greet.Enqueue(ctx, q, "Ada")
	if err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.Kind, "in queue", task.Queue, "is", task.State, "after", task.Attempts, "attempts")

	_, err = q.Task(ctx, receipt.ID+1)
	fmt.Println(errors.Is(err, falldue.ErrNotFound))
	// Output:
	// greet in queue default is open after 0 attempts
	// true
}

// Attempts lists the failed attempts of a task.
func ExampleQueue_Attempts() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	fetch := falldue.NewKind[string]("fetch", falldue.KindConfig{
		Policy: backoff.Constant(5 * time.Millisecond).WithMaxAttempts(2),
	})
	receipt, err := fetch.Enqueue(ctx, q, "https://example.com")
	if err != nil {
		log.Panic(err)
	}
	falldue.Handle(q, fetch, func(_ context.Context, t falldue.Task[string]) error {
		if t.Attempt == 1 {
			return errors.New("connection refused")
		}
		stop() // so that this example ends
		return errors.New("404 Not Found")
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	attempts, err := q.Attempts(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	for _, a := range attempts {
		fmt.Printf("attempt %d: %s, then %s\n", a.Attempt, a.Error, a.Outcome)
	}
	// Output:
	// attempt 1: connection refused, then retried
	// attempt 2: 404 Not Found, then dead
}

// Retry makes a dead task due again, here after the cause of its failure is
// gone. Its attempts start again at 1. A done task is retried only on request.
func ExampleQueue_Retry() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{DoneRetention: time.Hour})
	defer closeQueue()

	export := falldue.NewKind[string]("export", falldue.KindConfig{})
	receipt, err := export.Enqueue(ctx, q, "orders.csv")
	if err != nil {
		log.Panic(err)
	}

	diskFull := true
	ran := make(chan struct{}, 1)
	falldue.Handle(q, export, func(_ context.Context, t falldue.Task[string]) error {
		ran <- struct{}{}
		fmt.Println("attempt", t.Attempt)
		if diskFull {
			return falldue.Discard(errors.New("no space left on device"))
		}
		return nil
	})
	// work runs the worker until the task has run once.
	work := func() {
		running, stop := context.WithCancel(ctx)
		defer stop()
		go func() { <-ran; stop() }()
		if err := q.Run(running); err != nil {
			log.Panic(err)
		}
		task, err := q.Task(ctx, receipt.ID)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(task.State)
	}

	work()
	diskFull = false
	if err := q.Retry(ctx, receipt.ID); err != nil {
		log.Panic(err)
	}
	work()

	err = q.Retry(ctx, receipt.ID) // a second click, when the task is done
	fmt.Println(errors.Is(err, falldue.ErrWrongState))
	if err := q.Retry(ctx, receipt.ID, falldue.RetryOptions{State: falldue.StateDone}); err != nil { // once more, on purpose
		log.Panic(err)
	}
	work()

	err = q.Retry(ctx, receipt.ID+1) // there is no such task
	fmt.Println(errors.Is(err, falldue.ErrNotFound))
	// Output:
	// attempt 1
	// dead
	// attempt 1
	// done
	// true
	// attempt 1
	// done
	// true
}

// A cancelled task does not run. It stays in the table, and Retry makes it due
// again.
func ExampleQueue_Cancel() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	remind := falldue.NewKind[string]("remind", falldue.KindConfig{})
	receipt, err := remind.Enqueue(ctx, q, "dentist", falldue.EnqueueOptions{Delay: time.Hour})
	if err != nil {
		log.Panic(err)
	}
	if err := q.Cancel(ctx, receipt.ID); err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.State)

	err = q.Cancel(ctx, receipt.ID) // it is finished
	fmt.Println(errors.Is(err, falldue.ErrWrongState))
	// Output:
	// cancelled
	// true
}

// Cancel also ends the context of the task's running handler, on
// any worker, within two seconds. ErrLeaseLost would mean that the worker has lost the task
// for any reason, and ErrCancelled is one of them.
func ExampleQueue_Cancel_running() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	render := falldue.NewKind[string]("video.render", falldue.KindConfig{})
	if _, err := render.Enqueue(ctx, q, "holidays.mp4"); err != nil {
		log.Panic(err)
	}
	falldue.Handle(q, render, func(ctx context.Context, t falldue.Task[string]) error {
		if err := q.Cancel(ctx, t.ID); err != nil { // as somebody else would
			return err
		}
		<-ctx.Done() // stands for the work
		fmt.Println("cancelled:", errors.Is(context.Cause(ctx), falldue.ErrCancelled))
		fmt.Println("stop writing:", errors.Is(context.Cause(ctx), falldue.ErrLeaseLost))
		stop() // so that this example ends
		return ctx.Err()
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// cancelled: true
	// stop writing: true
}

// The database does not store when a task runs next. That follows from the row
// and the policy, so a new policy applies to tasks that already wait.
func ExampleTaskInfo_Due() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	poll := falldue.NewKind[string]("feed.poll", falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
	receipt, err := poll.Enqueue(ctx, q, "https://example.com/feed")
	if err != nil {
		log.Panic(err)
	}
	falldue.Handle(q, poll, func(context.Context, falldue.Task[string]) error {
		stop() // so that this example ends
		return errors.New("502 Bad Gateway")
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	failed := task.UpdatedAt
	fmt.Println("runs again", task.Due(poll.Config().Policy).Sub(failed), "after it failed")
	fmt.Println("with the next release", task.Due(backoff.Constant(5*time.Minute)).Sub(failed))
	// Output:
	// runs again 1h0m0s after it failed
	// with the next release 5m0s
}

// Delete refuses a task that runs, unless its options allow that.
func ExampleQueue_Delete() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	receipt, err := greet.Enqueue(ctx, q, "Ada")
	if err != nil {
		log.Panic(err)
	}
	err = q.Delete(ctx, receipt.ID)
	if errors.Is(err, falldue.ErrRunning) {
		err = q.Delete(ctx, receipt.ID, falldue.DeleteOptions{Running: true}) // its handler's context ends
	}
	if err != nil {
		log.Panic(err)
	}
	_, err = q.Task(ctx, receipt.ID)
	fmt.Println(errors.Is(err, falldue.ErrNotFound))
	// Output: true
}

// Retry with Args corrects the arguments of a task that could not succeed.
func ExampleQueue_Retry_arguments() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	receipt, err := greet.Enqueue(ctx, q, "Aad")
	if err != nil {
		log.Panic(err)
	}
	if err := q.Cancel(ctx, receipt.ID); err != nil {
		log.Panic(err)
	}
	if err := q.Retry(ctx, receipt.ID, falldue.RetryOptions{Args: "Ada"}); err != nil { // or json.RawMessage(`"Ada"`)
		log.Panic(err)
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	var name string
	if err := json.Unmarshal(task.Payload, &name); err != nil {
		log.Panic(err)
	}
	fmt.Println(name, task.State)
	// Output: Ada open
}
