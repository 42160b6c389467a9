package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// A kind has a name, which is stored with each task, and a type of arguments.
// NewKind returns no error, so that a kind can be a package variable; Enqueue
// and Run return an error for an invalid kind.
func ExampleNewKind() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	resize := falldue.NewKind[string]("image.resize", falldue.KindConfig{})
	fmt.Println(resize.Name(), "in queue", resize.Config().Queue)

	misnamed := falldue.NewKind[string]("resize an image", falldue.KindConfig{})
	_, err := misnamed.Enqueue(ctx, q, "cat.png")
	fmt.Println(errors.Is(err, falldue.ErrInvalid))
	// Output:
	// image.resize in queue default
	// true
}

// A kind says how its tasks are retried, where they wait and how long a handler
// may run.
func ExampleKindConfig() {
	export := falldue.NewKind[string]("export", falldue.KindConfig{
		Policy:   backoff.Linear(time.Minute, 9*time.Minute, 5),
		Queue:    "reports",
		Priority: 10, // after the tasks with 0
		Timeout:  15 * time.Minute,
		// A report whose worker dies in attempt 1 or 2 is built again as soon as the
		// lease ends, without the policy's delay.
		ImmediateLostRetries: 2,
	})
	policy := export.Config().Policy
	for n := range int64(policy.MaxAttempts() - 1) {
		wait, _ := policy.Wait(n + 1)
		fmt.Printf("failure %d, then wait %v\n", n+1, wait)
	}
	// Output:
	// failure 1, then wait 1m0s
	// failure 2, then wait 3m0s
	// failure 3, then wait 5m0s
	// failure 4, then wait 7m0s
	// failure 5, then wait 9m0s
}

// When the timeout of a kind is over, the context of the handler ends. A handler
// passes its context on to what it calls, and returns the error.
func ExampleKindConfig_timeout() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	slow := falldue.NewKind[string]("slow", falldue.KindConfig{
		Timeout: 10 * time.Millisecond,
		Policy:  backoff.Constant(time.Hour),
	})
	receipt, err := slow.Enqueue(ctx, q, "a page that never loads")
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, slow, func(ctx context.Context, _ falldue.Task[string]) error {
		<-ctx.Done() // stands for a call that takes too long
		fmt.Println("timed out:", errors.Is(context.Cause(ctx), falldue.ErrTimeout))
		stop() // so that this example ends
		return ctx.Err()
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.State, "after attempt", task.Attempts)
	fmt.Println(task.LastError)
	// Output:
	// timed out: true
	// open after attempt 1
	// falldue: handler timed out: context deadline exceeded
}

// A kind sets how long its finished tasks stay in the table. Config sets it for all other kinds:
// here done tasks are deleted immediately, and dead and cancelled ones after 30 days.
func ExampleKindConfig_retention() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{Concurrency: 1, DoneRetention: falldue.DeleteImmediately, DeadRetention: 30 * 24 * time.Hour})
	defer closeQueue()

	charge := falldue.NewKind[int]("charge", falldue.KindConfig{
		DoneRetention:      24 * time.Hour,     // a customer may ask for the receipt
		DeadRetention:      falldue.Forever,    // until a person has looked at each dead task
		CancelledRetention: 7 * 24 * time.Hour, // without it, Forever, as for dead tasks
	})
	falldue.Handle(q, charge, func(_ context.Context, t falldue.Task[int]) error {
		return t.SetResult(fmt.Sprintf("receipt of %d", t.Args))
	})
	mail := falldue.NewKind[string]("mail", falldue.KindConfig{Priority: 1}) // after charges
	falldue.Handle(q, mail, func(context.Context, falldue.Task[string]) error {
		stop() // so that this example ends
		return nil
	})
	charged, err := charge.Enqueue(ctx, q, 12)
	if err != nil {
		log.Panic(err)
	}
	mailed, err := mail.Enqueue(ctx, q, "ann@example.com")
	if err != nil {
		log.Panic(err)
	}
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	receipt, err := falldue.ResultOf[string](ctx, q, charged.ID)
	fmt.Println(receipt, err)
	_, err = q.Task(ctx, mailed.ID)
	fmt.Println("the mail is deleted:", errors.Is(err, falldue.ErrNotFound))
	// Output:
	// receipt of 12 <nil>
	// the mail is deleted: true
}

// The last done tasks of a kind stay in the table, so that you can see whether a task ran.
func ExampleKindConfig_maxDone() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	visit := falldue.NewKind[string]("visit", falldue.KindConfig{MaxDone: 1000}) // the last 1,000 stay
	falldue.Handle(q, visit, func(context.Context, falldue.Task[string]) error {
		stop() // so that this example ends
		return nil
	})
	receipt, err := visit.Enqueue(ctx, q, "/shop")
	if err != nil {
		log.Panic(err)
	}
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	fmt.Println(task.State, err)
	// Output:
	// done <nil>
}
