package falldue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
)

// Over all workers, at most 20 charges run at a time, and at most 2 for one customer.
func ExampleAtMost() {
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	charge := falldue.NewKind[int]("charge", falldue.KindConfig{
		Limits: []falldue.Limit{falldue.AtMost(20), falldue.AtMost(2).PerKey()},
	})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	falldue.Handle(q, charge, func(_ context.Context, t falldue.Task[int]) error {
		fmt.Println("charge", t.Args)
		stop()
		return nil
	})
	_, err := charge.Enqueue(ctx, q, 100, &falldue.EnqueueOptions{Key: "customer:42"})
	if err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	for _, limit := range charge.Config().Limits {
		fmt.Println(limit.String())
	}
	// Output:
	// charge 100
	// AtMost(20)
	// AtMost(2).PerKey()
}

// No more than 100 mails start in any minute. Of each customer's, one starts each 10 seconds
// on average, and up to 10 start at once after a pause.
func ExampleRate() {
	mail := falldue.NewKind[string]("mail", falldue.KindConfig{
		Limits: []falldue.Limit{
			falldue.Rate(100, time.Minute),
			falldue.Rate(6, time.Minute).Burst(10).PerKey(),
		},
	})
	for _, limit := range mail.Config().Limits {
		fmt.Println(limit)
	}
	// Output:
	// Rate(100, 1m0s)
	// Rate(6, 1m0s).Burst(10).PerKey()
}

// The events of an order are sent one after the other. After one that cannot be sent, the
// next ones of its order wait until somebody has looked at it.
func ExampleInOrder() {
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	send := falldue.NewKind[string]("event.send", falldue.KindConfig{
		Limits: []falldue.Limit{falldue.InOrder().HaltOnDeath()},
	})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	falldue.Handle(q, send, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println(t.Args)
		if t.Args == "shipped" {
			stop()
		}
		return nil
	})
	for _, event := range []string{"placed", "paid", "shipped"} {
		if _, err := send.Enqueue(ctx, q, event, &falldue.EnqueueOptions{Key: "order:7"}); err != nil {
			log.Panic(err)
		}
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// placed
	// paid
	// shipped
}
