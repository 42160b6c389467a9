package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/falldue/falldue"
)

// Middleware sees each run of a task and how it ends, here to log it.
func ExampleQueue_Use() {
	running, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{Concurrency: 1})
	defer closeQueue()
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))

	q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc {
		return func(ctx context.Context, run *falldue.Run) error {
			err := next(ctx, run)
			level, outcome := slog.LevelInfo, run.Outcome(err)
			if outcome == falldue.OutcomeDead || outcome == falldue.OutcomeDiscarded {
				level = slog.LevelError
			}
			args := []any{"id", run.ID, "kind", run.Kind, "attempt", run.Attempt, "outcome", outcome}
			if err != nil {
				args = append(args, "error", err)
			}
			logger.Log(ctx, level, "task", args...)
			return err
		}
	})

	charge := falldue.NewKind[string]("card.charge", falldue.KindConfig{})
	falldue.Handle(q, charge, func(_ context.Context, t falldue.Task[string]) error {
		if t.Args == "expired" {
			defer stop() // so that this example ends
			return falldue.Discard(errors.New("card expired"))
		}
		return nil
	})
	for _, card := range []string{"valid", "expired"} {
		if _, err := charge.Enqueue(running, q, card); err != nil {
			log.Panic(err)
		}
	}
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}
	// Output:
	// level=INFO msg=task id=1 kind=card.charge attempt=1 outcome=done
	// level=ERROR msg=task id=2 kind=card.charge attempt=1 outcome=discarded error="card expired"
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// The metadata of a task carries the trace in which it was enqueued to the run of its handler.
// With OpenTelemetry, inject and extract are those of a propagator.
func ExampleQueue_UseEnqueue() {
	running, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
		return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
			for i := range tasks {
				if parent := inject(ctx); parent != "" {
					tasks[i].AddMetadata("traceparent", parent)
				}
			}
			return next(ctx, tx, tasks)
		}
	})
	q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc {
		return func(ctx context.Context, run *falldue.Run) error {
			return next(extract(ctx, run.Metadata["traceparent"]), run)
		}
	})

	type Mail struct{ To string }
	send := falldue.NewKind[Mail]("mail.send", falldue.KindConfig{})
	falldue.Handle(q, send, func(ctx context.Context, t falldue.Task[Mail]) error {
		defer stop() // so that this example ends
		fmt.Println("in trace", inject(ctx), "to", t.Args.To)
		return nil
	})
	request := extract(running, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if _, err := send.Enqueue(request, q, Mail{To: "ann@example.com"}); err != nil {
		log.Panic(err)
	}
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}
	// Output: in trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 to ann@example.com
}

type traceKey struct{}

// inject returns the trace context of ctx as W3C writes it, or "".
func inject(ctx context.Context) string {
	parent, _ := ctx.Value(traceKey{}).(string)
	return parent
}

// extract returns a context with a trace context.
func extract(ctx context.Context, parent string) context.Context {
	return context.WithValue(ctx, traceKey{}, parent)
}

// Middleware may change options, and refuse tasks before anything is stored.
func ExampleEnqueueParams_Options() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Order struct{ Customer string }
	errNoCustomer := errors.New("an order without a customer")
	q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
		return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
			for i := range tasks {
				order, ok := tasks[i].Args().(Order)
				if !ok {
					continue
				}
				if order.Customer == "" {
					return nil, fmt.Errorf("%s: %w", tasks[i].Kind(), errNoCustomer)
				}
				tasks[i].Options().Key = "customer:" + order.Customer
			}
			return next(ctx, tx, tasks)
		}
	})

	ship := falldue.NewKind[Order]("order.ship", falldue.KindConfig{})
	_, err := ship.Enqueue(ctx, q, Order{})
	fmt.Println(err)
	receipt, err := ship.Enqueue(ctx, q, Order{Customer: "ann"})
	if err != nil {
		log.Panic(err)
	}
	info, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(info.Key)
	// Output:
	// order.ship: an order without a customer
	// customer:ann
}

// A subscription has what happens in the worker of this process, here to count dead tasks.
func ExampleQueue_Subscribe() {
	running, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()
	dead := q.Subscribe(falldue.SubscribeOptions{Outcomes: []falldue.Outcome{falldue.OutcomeDead, falldue.OutcomeDiscarded}})
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for e := range dead.Events() {
			fmt.Printf("%s, attempt %d: %v\n", e.Kind, e.Attempt, e.Err)
		}
		fmt.Println("dropped:", dead.Dropped())
	}()

	export := falldue.NewKind[string]("export", falldue.KindConfig{})
	falldue.Handle(q, export, func(context.Context, falldue.Task[string]) error {
		defer stop() // so that this example ends
		return falldue.Discard(errors.New("no such table"))
	})
	if _, err := export.Enqueue(running, q, "orders"); err != nil {
		log.Panic(err)
	}
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}
	dead.Close()
	<-counted
	// Output:
	// export, attempt 1: no such table
	// dropped: 0
}

// Hooks get the numbers for metrics: here how long tasks waited for a worker, and claims that
// found nothing.
func ExampleHooks() {
	running, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := openQueue(falldue.Config{Hooks: falldue.Hooks{
		Event: func(e falldue.Event) {
			if e.Outcome == falldue.OutcomeNone {
				limits, worker := e.ReadyAt.Sub(e.DueAt), e.StartedAt.Sub(e.ReadyAt) // into two histograms
				fmt.Println(e.Kind, "began, has waited for limits:", limits > 0, "and for a worker:", worker > 0)
				return
			}
			fmt.Println(e.Kind, "is", e.Outcome)
		},
		Claim: func(s falldue.StatementStats) {
			if s.Tasks > 0 {
				fmt.Println("claimed:", s.Tasks, "in a moment:", s.Took > 0)
			}
		},
		Settle: func(s falldue.StatementStats) { fmt.Println("settled:", s.Tasks-s.Lost-s.Locked) },
	}})
	defer closeQueue()
	clean := falldue.NewKind[int]("clean", falldue.KindConfig{})
	falldue.Handle(q, clean, func(context.Context, falldue.Task[int]) error {
		defer stop() // so that this example ends
		return nil
	})
	if _, err := clean.Enqueue(running, q, 1); err != nil {
		log.Panic(err)
	}
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}
	// Output:
	// claimed: 1 in a moment: true
	// clean began, has waited for limits: false and for a worker: true
	// settled: 1
	// clean is done
}
