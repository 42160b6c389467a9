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

// A handler that returns an error is called again after the policy's delay,
// until it returns nil or no attempt is left.
func ExampleHandle() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Order struct{ Number int }
	ship := falldue.NewKind[Order]("order.ship", falldue.KindConfig{
		Policy: backoff.Constant(5 * time.Millisecond).WithMaxAttempts(10),
	})
	if _, err := ship.Enqueue(ctx, q, Order{Number: 42}); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, ship, func(_ context.Context, t falldue.Task[Order]) error {
		if t.Attempt < 3 {
			fmt.Printf("order %d, attempt %d of %d: no van\n", t.Args.Number, t.Attempt, t.MaxAttempts)
			return errors.New("no van")
		}
		fmt.Printf("order %d, attempt %d of %d: shipped\n", t.Args.Number, t.Attempt, t.MaxAttempts)
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// order 42, attempt 1 of 10: no van
	// order 42, attempt 2 of 10: no van
	// order 42, attempt 3 of 10: shipped
}

// Attempt goes up with each failure. Fence goes up with each run, after a snooze
// too: another system that gets the fence can refuse a request whose fence is
// lower than one it has seen.
func ExampleTask() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	publish := falldue.NewKind[string]("page.publish", falldue.KindConfig{
		Policy: backoff.Constant(5 * time.Millisecond),
	})
	if _, err := publish.Enqueue(ctx, q, "index.html"); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, publish, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Printf("%s %s: attempt %d, fence %d\n", t.Kind, t.Args, t.Attempt, t.Fence)
		switch t.Fence {
		case 1:
			return falldue.Snooze(5 * time.Millisecond)
		case 2:
			return errors.New("connection reset")
		}
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// page.publish index.html: attempt 1, fence 1
	// page.publish index.html: attempt 1, fence 2
	// page.publish index.html: attempt 2, fence 3
}

// DoneTx ends the task in the transaction of the handler. If anything fails
// before the commit, the update is rolled back and the task runs again. After
// the commit the points are credited and the task is done.
func ExampleTask_DoneTx() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})
	db.MustExec("create table accounts (name text primary key, points integer not null)")
	db.MustExec("insert into accounts values ('ada', 100)")

	type Bonus struct {
		Account string
		Points  int
	}
	credit := falldue.NewKind[Bonus]("bonus.credit", falldue.KindConfig{Policy: backoff.Constant(0)})
	if _, err := credit.Enqueue(ctx, q, Bonus{Account: "ada", Points: 5}); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, credit, func(ctx context.Context, t falldue.Task[Bonus]) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing once it is committed
		if _, err := tx.ExecContext(ctx, "update accounts set points = points + ? where name = ?", t.Args.Points, t.Args.Account); err != nil {
			return err
		}
		if t.Attempt == 1 {
			return errors.New("something fails after the update") // which is rolled back
		}
		if err := t.DoneTx(ctx, tx); err != nil {
			return err
		}
		stop() // so that this example ends
		return tx.Commit()
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}

	var points int
	if err := db.Get(&points, "select points from accounts where name = 'ada'"); err != nil {
		log.Panic(err)
	}
	fmt.Println(points)
	// Output:
	// 105
}

// A handler that called DoneTx ends its task only with the commit. This one forgets that in its
// first attempt, which fails.
func ExampleTask_DoneTx_notCommitted() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{Hooks: falldue.Hooks{Event: func(e falldue.Event) {
		if errors.Is(e.Err, falldue.ErrNotCommitted) {
			fmt.Println("attempt", e.Attempt, "has not committed")
		}
	}}})

	credit := falldue.NewKind[int]("bonus.credit", falldue.KindConfig{Policy: backoff.Constant(0)})
	falldue.Handle(q, credit, func(ctx context.Context, t falldue.Task[int]) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing once it is committed
		if err := t.DoneTx(ctx, tx); err != nil {
			return err
		}
		if t.Attempt == 1 {
			return nil
		}
		stop() // so that this example ends
		return tx.Commit()
	})
	if _, err := credit.Enqueue(ctx, q, 5); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// attempt 1 has not committed
}

// A handler ends its task and enqueues the next one in the same transaction, so
// that each order gets exactly one invoice.
func ExampleTask_DoneTx_followUp() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})

	var (
		order   = falldue.NewKind[int]("order.place", falldue.KindConfig{})
		invoice = falldue.NewKind[int]("invoice.send", falldue.KindConfig{})
	)
	falldue.Handle(q, order, func(ctx context.Context, t falldue.Task[int]) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing once it is committed
		if _, err := invoice.EnqueueTx(ctx, q, tx, t.Args); err != nil {
			return err
		}
		if err := t.DoneTx(ctx, tx); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		q.Wake() // so that the invoice need not wait for the next poll
		fmt.Println("order", t.Args)
		return nil
	})
	falldue.Handle(q, invoice, func(_ context.Context, t falldue.Task[int]) error {
		fmt.Println("invoice of order", t.Args)
		stop() // so that this example ends
		return nil
	})

	if _, err := order.Enqueue(ctx, q, 42); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// order 42
	// invoice of order 42
}

// SetResult keeps a result with the task for as long as Config.DoneRetention
// says. By default a task that is done is deleted at once, and its result with
// it.
func ExampleTask_SetResult() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{DoneRetention: time.Hour})
	defer closeQueue()

	type Size struct{ Width, Height int }
	measure := falldue.NewKind[string]("image.measure", falldue.KindConfig{})
	receipt, err := measure.Enqueue(ctx, q, "cat.png")
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, measure, func(_ context.Context, t falldue.Task[string]) error {
		stop() // so that this example ends
		return t.SetResult(Size{Width: 640, Height: 480})
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.State, string(task.Result))
	// Output:
	// done {"Width":640,"Height":480}
}

// Progress is read while the task runs, and from a task that is kept when it has ended.
func ExampleTask_Progress() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	resize := falldue.NewKind[[]string]("images.resize", falldue.KindConfig{DoneRetention: 24 * time.Hour})
	receipt, err := resize.Enqueue(ctx, q, []string{"cat.png", "dog.png"})
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, resize, func(_ context.Context, t falldue.Task[[]string]) error {
		for i, name := range t.Args {
			// … resize the image …
			t.Progress(float64(i+1)/float64(len(t.Args)), "resized "+name)
		}
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	p, err := q.Progress(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("%.0f %%: %s\n", 100*p.Fraction, p.Message)
	// Output: 100 %: resized dog.png
}

// ResultOf reads what SetResult has stored. Done tasks must be kept for that.
func ExampleResultOf() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Size struct{ Width, Height int }
	measure := falldue.NewKind[string]("image.measure", falldue.KindConfig{DoneRetention: time.Hour})
	receipt, err := measure.Enqueue(ctx, q, "cat.png")
	if err != nil {
		log.Panic(err)
	}
	_, err = falldue.ResultOf[Size](ctx, q, receipt.ID)
	fmt.Println("a result before it ran:", !errors.Is(err, falldue.ErrNoResult))

	falldue.Handle(q, measure, func(_ context.Context, t falldue.Task[string]) error {
		stop() // so that this example ends
		return t.SetResult(Size{Width: 640, Height: 480})
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	size, err := falldue.ResultOf[Size](ctx, q, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(size.Width, "x", size.Height)
	// Output:
	// a result before it ran: false
	// 640 x 480
}
