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

// A task can wait before its first run, for a duration or until a given time.
func ExampleEnqueueOptions() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	remind := falldue.NewKind[string]("remind", falldue.KindConfig{})

	later, err := remind.Enqueue(ctx, q, "drink", falldue.EnqueueOptions{Delay: 90 * time.Minute})
	if err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, later.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("waits for", task.UpdatedAt.Sub(task.CreatedAt))

	newYear := time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
	then, err := remind.Enqueue(ctx, q, "celebrate", falldue.EnqueueOptions{RunAt: newYear})
	if err != nil {
		log.Panic(err)
	}
	task, err = q.Task(ctx, then.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("waits until", task.UpdatedAt)

	_, err = remind.Enqueue(ctx, q, "both", falldue.EnqueueOptions{Delay: time.Hour, RunAt: newYear})
	fmt.Println(errors.Is(err, falldue.ErrInvalid))
	// Output:
	// waits for 1h30m0s
	// waits until 2100-01-01 00:00:00 +0000 UTC
	// true
}

// Tasks with a lower priority run first. A task without its own priority has the
// priority of its kind.
func ExampleEnqueueOptions_priority() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{Concurrency: 1}) // one at a time, to see their order
	defer closeQueue()

	thumbnail := falldue.NewKind[string]("thumbnail", falldue.KindConfig{Priority: 10})
	_, err := q.EnqueueMany(ctx,
		thumbnail.Params("by its kind"),
		thumbnail.Params("the last", falldue.EnqueueOptions{Priority: new(20)}),
		thumbnail.Params("in a hurry", falldue.EnqueueOptions{Priority: new(0)}),
		thumbnail.Params("the first", falldue.EnqueueOptions{Priority: new(-5)}),
	)
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, thumbnail, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println(t.Priority, t.Args)
		if t.Priority == 20 {
			stop() // so that this example ends
		}
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// -5 the first
	// 0 in a hurry
	// 10 by its kind
	// 20 the last
}

// A task can have its own policy, such as one that a customer has chosen.
func ExampleEnqueueOptions_policy() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	webhook := falldue.NewKind[string]("webhook", falldue.KindConfig{}) // 26 attempts
	policy, err := backoff.Parse("10ms * n; attempts 3")
	if err != nil {
		log.Panic(err)
	}
	if _, err := webhook.Enqueue(ctx, q, "https://example.com/hook", falldue.EnqueueOptions{Policy: policy}); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, webhook, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Printf("attempt %d of %d\n", t.Attempt, t.MaxAttempts)
		if t.Attempt == t.MaxAttempts {
			stop() // so that this example ends
		}
		return errors.New("503 Service Unavailable")
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// attempt 1 of 3
	// attempt 2 of 3
	// attempt 3 of 3
}

// A task that has not started by a time is cancelled instead of run.
func ExampleEnqueueOptions_expireAt() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{Concurrency: 1})
	defer closeQueue()

	offer := falldue.NewKind[string]("seat.offer", falldue.KindConfig{})
	departure := time.Now().Add(-time.Minute) // the worker was down until then
	late, err := offer.Enqueue(ctx, q, "12A", falldue.EnqueueOptions{ExpireAt: departure})
	if err != nil {
		log.Panic(err)
	}
	if _, err := offer.Enqueue(ctx, q, "7C", falldue.EnqueueOptions{ExpireAt: departure.Add(24 * time.Hour)}); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, offer, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println("offer", t.Args)
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	task, err := q.Task(context.Background(), late.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.State)
	fmt.Println(task.LastError)
	// Output:
	// offer 7C
	// cancelled
	// expired: no attempt began by the task's ExpireAt
}
