package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// Run works until its context ends. In a program this is often the context of
// signal.NotifyContext. Running handlers then finish, and tasks that have not
// started are left for other workers.
func ExampleQueue_Run() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{Concurrency: 1})
	defer closeQueue()

	pack := falldue.NewKind[string]("order.pack", falldue.KindConfig{})
	if _, err := pack.EnqueueMany(ctx, q, []string{"order 1", "order 2", "order 3"}); err != nil {
		log.Panic(err)
	}
	falldue.Handle(q, pack, func(ctx context.Context, t falldue.Task[string]) error {
		stop() // somebody stops the program
		fmt.Println(t.Args, "is packed to the end:", ctx.Err() == nil)
		return nil
	})

	if err := q.Run(running); err != nil {
		log.Panic(err)
	}
	waiting, err := ops.New(q).Tasks(ctx, ops.Filter{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("tasks for the next worker:", len(waiting.Tasks))
	// Output:
	// order 1 is packed to the end: true
	// tasks for the next worker: 2
}

// When Config.ShutdownTimeout is over, Run cancels the contexts of the handlers
// that still run. If such a handler returns an error, its task runs again later,
// and the attempt does not count.
func ExampleQueue_Run_shutdownTimeout() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{ShutdownTimeout: 10 * time.Millisecond})
	defer closeQueue()

	index := falldue.NewKind[string]("search.index", falldue.KindConfig{})
	receipt, err := index.Enqueue(ctx, q, "all products")
	if err != nil {
		log.Panic(err)
	}
	falldue.Handle(q, index, func(ctx context.Context, _ falldue.Task[string]) error {
		stop()       // somebody stops the program
		<-ctx.Done() // stands for work that takes longer
		fmt.Println("stopping:", errors.Is(context.Cause(ctx), falldue.ErrStopping))
		return ctx.Err()
	})

	if err := q.Run(running); err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("attempts:", task.Attempts)
	// Output:
	// stopping: true
	// attempts: 0
}

// Call Wake after the commit of a transaction that enqueued tasks. Otherwise the
// worker finds them at its next poll, which here would be in an hour.
func ExampleQueue_Wake() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{PollInterval: time.Hour})

	invoice := falldue.NewKind[int]("invoice.send", falldue.KindConfig{})
	falldue.Handle(q, invoice, func(_ context.Context, t falldue.Task[int]) error {
		fmt.Println("invoice of order", t.Args)
		stop() // so that this example ends
		return nil
	})
	finished := make(chan error)
	go func() { finished <- q.Run(ctx) }()

	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if _, err := invoice.EnqueueTx(ctx, q, tx, 42); err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}
	q.Wake()

	if err := <-finished; err != nil {
		log.Panic(err)
	}
	// Output:
	// invoice of order 42
}

// A handler that ignores the end of its context is given up: Run does not wait for it, and OnStuck
// decides about its task.
func ExampleConfig_stuckTimeout() {
	cfg := falldue.Config{
		StuckTimeout: 30 * time.Second, // after the end of a handler's context
		MaxStuck:     5,                // with more, Run returns an error, so that the process restarts
		OnStuck: func(run falldue.RunInfo, err error) error {
			if run.Kind == "card.charge" {
				return falldue.Discard(err) // a person must check whether the charge was made
			}
			return err // the attempt has failed
		},
	}
	cfg.StuckTimeout, cfg.MaxStuck = time.Millisecond, -1 // so that this example ends
	q, closeQueue := openQueue(cfg)
	defer closeQueue()

	charge := falldue.NewKind[string]("card.charge", falldue.KindConfig{})
	ctx := context.Background()
	receipt, err := charge.Enqueue(ctx, q, "order 42", falldue.EnqueueOptions{Timeout: time.Millisecond})
	if err != nil {
		log.Panic(err)
	}
	forever := make(chan struct{})
	defer close(forever)
	falldue.Handle(q, charge, func(context.Context, falldue.Task[string]) error {
		<-forever
		return nil
	})
	fmt.Println("stuck:", errors.Is(q.Run(ctx), falldue.ErrStuck))
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.State)
	fmt.Println(task.LastError)
	// Output:
	// stuck: true
	// dead
	// falldue: handler is stuck: it has not returned within 1ms of the end of its context: falldue: handler timed out
}
