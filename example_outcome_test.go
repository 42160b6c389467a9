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

// Snooze puts off a task that has nothing to do yet. It uses up no attempt.
func ExampleSnooze() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	capture := falldue.NewKind[string]("payment.capture", falldue.KindConfig{})
	if _, err := capture.Enqueue(ctx, q, "payment 7"); err != nil {
		log.Panic(err)
	}

	answers := []string{"pending", "pending", "authorized"} // of the bank
	falldue.Handle(q, capture, func(_ context.Context, t falldue.Task[string]) error {
		answer := answers[0]
		answers = answers[1:]
		fmt.Printf("attempt %d: %s is %s\n", t.Attempt, t.Args, answer)
		if answer == "pending" {
			return falldue.Snooze(5 * time.Millisecond)
		}
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// attempt 1: payment 7 is pending
	// attempt 1: payment 7 is pending
	// attempt 1: payment 7 is authorized
}

// A handler polls an order until it has arrived. The store's failure costs an attempt, and the next answer
// forgets the failure: an order on its way for weeks never runs out of attempts.
func ExampleAgain() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	track := falldue.NewKind[string]("order.track", falldue.KindConfig{
		Policy: backoff.Constant(5 * time.Millisecond).WithMaxAttempts(3),
	})
	if _, err := track.Enqueue(ctx, q, "order 7"); err != nil {
		log.Panic(err)
	}

	answers := []string{"packed", "", "on its way", "arrived"} // of the store; "" is a failure
	falldue.Handle(q, track, func(_ context.Context, t falldue.Task[string]) error {
		answer := answers[0]
		answers = answers[1:]
		fmt.Printf("attempt %d: %q\n", t.Attempt, answer)
		switch answer {
		case "":
			return errors.New("the store is down")
		case "arrived":
			stop() // so that this example ends
			return nil
		}
		return falldue.Again(5 * time.Millisecond)
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// attempt 1: "packed"
	// attempt 1: ""
	// attempt 2: "on its way"
	// attempt 1: "arrived"
}

// An overloaded server says when to try again. RetryAfter waits for that long
// instead of the policy's delay, which here is an hour. The attempt counts.
func ExampleRetryAfter() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	syncContacts := falldue.NewKind[string]("contacts.sync", falldue.KindConfig{
		Policy: backoff.Constant(time.Hour).WithMaxAttempts(5),
	})
	if _, err := syncContacts.Enqueue(ctx, q, "ada"); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, syncContacts, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println("attempt", t.Attempt)
		if t.Attempt == 1 {
			wait := 5 * time.Millisecond // from the Retry-After header
			return falldue.RetryAfter(wait, errors.New("429 Too Many Requests"))
		}
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// attempt 1
	// attempt 2
}

// Discard makes a task dead that cannot succeed, however many attempts are left.
func ExampleDiscard() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	charge := falldue.NewKind[string]("card.charge", falldue.KindConfig{})
	receipt, err := charge.Enqueue(ctx, q, "card 7")
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, charge, func(context.Context, falldue.Task[string]) error {
		stop() // so that this example ends
		return falldue.Discard(errors.New("card expired"))
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.State, "after", task.Attempts, "attempt:", task.LastError)
	// Output:
	// dead after 1 attempt: card expired
}

// A panic is a failed attempt. The worker continues, and the stack of the panic
// is recorded.
func ExamplePanicError() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	parse := falldue.NewKind[[]string]("feed.parse", falldue.KindConfig{})
	receipt, err := parse.Enqueue(ctx, q, []string{})
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, parse, func(_ context.Context, t falldue.Task[[]string]) error {
		stop() // so that this example ends
		fmt.Println(t.Args[0])
		return nil
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	attempts, err := q.Attempts(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	for _, a := range attempts {
		fmt.Println(a.Outcome, a.Error, a.Stack != "")
	}
	// Output:
	// retried panic: runtime error: index out of range [0] with length 0 true
}
