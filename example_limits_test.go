package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
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
	_, err := charge.Enqueue(ctx, q, 100, falldue.EnqueueOptions{Key: "customer:42"})
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

// No more than two mails start in any hour. A third one waits.
func ExampleRate() {
	q, closeQueue := openQueue(falldue.Config{Concurrency: 1})
	defer closeQueue()

	mail := falldue.NewKind[string]("mail", falldue.KindConfig{
		Limits: []falldue.Limit{falldue.Rate(2, time.Hour)},
	})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	falldue.Handle(q, mail, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println("mail to", t.Args)
		if t.Args == "Bob" {
			stop() // so that this example ends
		}
		return nil
	})
	if _, err := mail.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"}); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	page, err := ops.New(q).Tasks(context.Background(), ops.Filter{Kind: "mail"})
	if err != nil {
		log.Panic(err)
	}
	for _, task := range page.Tasks {
		fmt.Println("mail to", string(task.Payload), "is", task.Phase)
	}
	// Output:
	// mail to Ada
	// mail to Bob
	// mail to "Eve" is limited
}

// A kind may have several limits. A task runs when all of them allow it.
func ExampleLimit() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	charge := falldue.NewKind[int]("charge", falldue.KindConfig{
		Limits: []falldue.Limit{
			falldue.AtMost(20),                              // run at a time
			falldue.AtMost(2).PerKey(),                      // run at a time for each key
			falldue.Rate(100, time.Minute),                  // start in any minute
			falldue.Rate(6, time.Minute).Burst(10).PerKey(), // start each minute on average, for each key
		},
	})
	receipt, err := charge.Enqueue(ctx, q, 500, falldue.EnqueueOptions{Key: "customer:42"})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("task", receipt.ID)
	for _, limit := range charge.Config().Limits {
		fmt.Println(limit)
	}
	// Output:
	// task 1
	// AtMost(20)
	// AtMost(2).PerKey()
	// Rate(100, 1m0s)
	// Rate(6, 1m0s).Burst(10).PerKey()
}

// The limit of a queue counts the tasks of all its kinds: one of them runs at a time.
func ExampleQueueConfig() {
	cfg := falldue.Config{
		Queues: map[string]falldue.QueueConfig{"images": {Limits: []falldue.Limit{falldue.AtMost(1)}}},
	}
	q, closeQueue := openQueue(cfg)
	defer closeQueue()

	resize := falldue.NewKind[string]("image.resize", falldue.KindConfig{Queue: "images"})
	rotate := falldue.NewKind[string]("image.rotate", falldue.KindConfig{Queue: "images"})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	handler := func(ctx context.Context, _ falldue.Task[string]) error {
		page, err := ops.New(q).Tasks(ctx, ops.Filter{Queue: "images", Phase: falldue.PhaseLimited})
		if err != nil {
			return err
		}
		fmt.Println("a task runs while", len(page.Tasks), "wait for it")
		if len(page.Tasks) == 0 {
			stop() // so that this example ends
		}
		return nil
	}
	falldue.Handle(q, resize, handler)
	falldue.Handle(q, rotate, handler)
	for _, kind := range []falldue.Kind[string]{resize, rotate} {
		if _, err := kind.EnqueueMany(ctx, q, []string{"cat.png", "dog.png"}); err != nil {
			log.Panic(err)
		}
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// a task runs while 3 wait for it
	// a task runs while 2 wait for it
	// a task runs while 1 wait for it
	// a task runs while 0 wait for it
}

// A worker also runs the queues of tenants that sign up while it works.
func ExampleQueueConfig_pattern() {
	cfg := falldue.Config{
		Queues: map[string]falldue.QueueConfig{
			"default":    {},
			"tenant:*":   {Concurrency: 50, Limits: []falldue.Limit{falldue.AtMost(5)}},
			"tenant:big": {Concurrency: 20},
		},
	}
	q, closeQueue := openQueue(cfg)
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	signUp := falldue.NewKind[string]("tenant.sign_up", falldue.KindConfig{})
	report := falldue.NewKind[int]("report", falldue.KindConfig{})
	falldue.Handle(q, signUp, func(ctx context.Context, t falldue.Task[string]) error {
		fmt.Println("tenant", t.Args, "in the queue", t.Queue)
		_, err := report.Enqueue(ctx, q, 2026, falldue.EnqueueOptions{Queue: "tenant:" + t.Args})
		return err
	})
	falldue.Handle(q, report, func(_ context.Context, t falldue.Task[int]) error {
		fmt.Println("report", t.Args, "in the queue", t.Queue)
		stop() // so that this example ends
		return nil
	})
	if _, err := signUp.Enqueue(ctx, q, "small"); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// tenant small in the queue default
	// report 2026 in the queue tenant:small
}

// The events of an order are sent one after the other. After one that cannot be sent, the
// next ones of its order wait until somebody has retried or deleted it.
func ExampleInOrder() {
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	send := falldue.NewKind[string]("event.send", falldue.KindConfig{
		Limits: []falldue.Limit{falldue.InOrder().HaltOnDeath()},
	})
	refused := true // by the receiver
	var stop context.CancelFunc
	falldue.Handle(q, send, func(_ context.Context, t falldue.Task[string]) error {
		if t.Args == "paid" && refused {
			stop() // so that this example goes on
			return falldue.Discard(errors.New("refused"))
		}
		if t.Args == "shipped" {
			stop()
		}
		fmt.Println("sent", t.Args)
		return nil
	})
	run := func() {
		var ctx context.Context
		ctx, stop = context.WithCancel(context.Background())
		defer stop()
		if err := q.Run(ctx); err != nil {
			log.Panic(err)
		}
	}
	ctx := context.Background()
	receipts, err := send.EnqueueMany(ctx, q, []string{"placed", "paid", "shipped"}, falldue.EnqueueOptions{Key: "order:7"})
	if err != nil {
		log.Panic(err)
	}
	run()
	page, err := ops.New(q).Tasks(ctx, ops.Filter{Kind: "event.send"})
	if err != nil {
		log.Panic(err)
	}
	for _, task := range page.Tasks {
		fmt.Println(string(task.Payload), "is", task.Phase)
	}
	refused = false // the cause is repaired
	if err := q.Retry(ctx, receipts[1].ID); err != nil {
		log.Panic(err)
	}
	run()
	// Output:
	// sent placed
	// "paid" is dead
	// "shipped" is limited
	// sent paid
	// sent shipped
}

// The kind makes the key of each task from its arguments. The orders of a customer are shipped one
// after the other.
func ExampleKind_KeyedBy() {
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type order struct{ Customer, Coffee string }
	ship := falldue.NewKind[order]("ship", falldue.KindConfig{Limits: []falldue.Limit{falldue.InOrder()}}).
		KeyedBy(func(o order) string { return o.Customer })
	ctx := context.Background()
	receipts, err := ship.EnqueueMany(ctx, q, []order{{"ada", "Sidamo"}, {"bob", "Huila"}, {"ada", "Gesha"}})
	if err != nil {
		log.Panic(err)
	}
	for _, r := range receipts {
		task, err := q.Task(ctx, r.ID)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(string(task.Payload), "has the key", task.Key)
	}
	// Output:
	// {"Customer":"ada","Coffee":"Sidamo"} has the key ada
	// {"Customer":"bob","Coffee":"Huila"} has the key bob
	// {"Customer":"ada","Coffee":"Gesha"} has the key ada
}

// Alerts never end, since each is followed by another one. Reports still have a tenth of the tasks.
func ExampleQueueConfig_lowPriorityShare() {
	cfg := falldue.Config{
		Queues: map[string]falldue.QueueConfig{"default": {Concurrency: 1, MaxPrefetch: -1, LowPriorityShare: 10}},
	}
	q, closeQueue := openQueue(cfg)
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	alert := falldue.NewKind[string]("alert", falldue.KindConfig{})
	report := falldue.NewKind[int]("report", falldue.KindConfig{Priority: 10}) // less urgent
	alerts, reports := 0, 0
	falldue.Handle(q, alert, func(ctx context.Context, t falldue.Task[string]) error {
		alerts++
		_, err := alert.Enqueue(ctx, q, t.Args)
		return err
	})
	falldue.Handle(q, report, func(context.Context, falldue.Task[int]) error {
		if reports++; reports == 5 {
			stop() // so that this example ends
		}
		return nil
	})
	if _, err := report.EnqueueMany(ctx, q, []int{1, 2, 3, 4, 5}); err != nil {
		log.Panic(err)
	}
	if _, err := alert.EnqueueMany(ctx, q, []string{"disk full", "no memory", "high load"}); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	fmt.Println("reports:", reports, "alerts:", alerts)
	// Output:
	// reports: 5 alerts: 45
}

// While tasks of both tenants wait, tenant 42 gets three tasks for one of tenant 43.
func ExampleKindConfig_weight() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{Concurrency: 1, MaxPrefetch: -1})
	defer closeQueue()

	paying := map[string]bool{falldue.KeyOf("tenant", "42"): true}
	type delivery struct{ Tenant, Endpoint string }
	deliver := falldue.NewKind[delivery]("deliver", falldue.KindConfig{
		Weight: func(tenant string) int { // such as tenant=42
			if paying[tenant] {
				return 3
			}
			return 1
		},
	}).KeyedBy(func(d delivery) string { return falldue.KeyOf("tenant", d.Tenant, "endpoint", d.Endpoint) })

	counts, started := map[string]int{}, 0
	falldue.Handle(q, deliver, func(_ context.Context, t falldue.Task[delivery]) error {
		counts[t.Args.Tenant]++
		if started++; started == 40 {
			stop() // so that this example ends
		}
		return nil
	})
	for _, d := range []delivery{{"43", "1"}, {"42", "1"}} {
		if _, err := deliver.EnqueueMany(ctx, q, slices.Repeat([]delivery{d}, 100)); err != nil {
			log.Panic(err)
		}
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	fmt.Println(counts)
	// Output:
	// map[42:30 43:10]
}

// A key has two parts. Limits count the deliveries of each tenant, and the deliveries to an endpoint run in order.
func ExampleKeyOf() {
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type delivery struct{ Tenant, Endpoint, Event string }
	deliver := falldue.NewKind[delivery]("deliver", falldue.KindConfig{
		Limits: []falldue.Limit{
			falldue.AtMost(2).PerKey("tenant"),
			falldue.Rate(100, time.Minute).PerKey("tenant"),
			falldue.InOrder(), // of each endpoint
		},
	}).KeyedBy(func(d delivery) string { return falldue.KeyOf("tenant", d.Tenant, "endpoint", d.Endpoint) })
	ctx := context.Background()
	receipt, err := deliver.Enqueue(ctx, q, delivery{"42", "7", "paid"})
	if err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.Key)
	err = q.Pause(ctx, falldue.Subject{Key: falldue.KeyOf("tenant", "42")}) // all endpoints of the tenant
	if err != nil {
		log.Panic(err)
	}
	page, err := ops.New(q).Tasks(ctx, ops.Filter{Key: "tenant=42", Phase: falldue.PhasePaused})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(page.Tasks), "task is paused")
	// Output:
	// tenant=42/endpoint=7
	// 1 task is paused
}
