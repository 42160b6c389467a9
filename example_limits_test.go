package falldue_test

import (
	"context"
	"fmt"
	"log"

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
