package ops_test

import (
	"context"
	"fmt"
	"log"
	"time"

	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// shop makes a queue in which ten mails wait: one is due, and nine are in the next hour.
func shop(ctx context.Context) (q *falldue.Queue, closeQueue func()) {
	q, closeQueue = openQueue()
	mail := falldue.NewKind[struct{}]("mail", falldue.KindConfig{})
	for i := range 10 {
		if _, err := mail.Enqueue(ctx, q, struct{}{}, falldue.EnqueueOptions{Delay: time.Duration(i) * 6 * time.Minute}); err != nil {
			log.Panic(err)
		}
	}
	return q, closeQueue
}

func ExampleOps() {
	ctx := context.Background()
	q, closeQueue := shop(ctx)
	defer closeQueue()

	o, err := ops.New(q).WithPolicies(map[string]backoff.Policy{"mail": backoff.Zizq()}) // unless q handles mail
	if err != nil {
		log.Panic(err)
	}
	queues, err := o.Queues(ctx)
	if err != nil {
		log.Panic(err)
	}
	for _, q := range queues {
		fmt.Println(q.Name, q.Kinds, "due:", !q.FirstDue.After(q.Now))
	}
	profile, err := o.Profile(ctx)
	if err != nil {
		log.Panic(err)
	}
	forecast, err := profile.Forecast(time.Hour)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("due now:", forecast.All.Due, "within an hour:", forecast.All.Total())
	diff, err := profile.Diff("mail", backoff.Constant(time.Second), 0)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("another policy causes a retry storm:", diff.Herd)
	findings, err := o.Diagnose(ctx)
	if err != nil {
		log.Panic(err)
	}
	for _, f := range findings {
		if f.Level != ops.Fine {
			fmt.Printf("%v: %s\n", f.Level, f.Text) // and f.Advice
		}
	}
	// Output:
	// default [mail] due: true
	// due now: 1 within an hour: 10
	// another policy causes a retry storm: false
	// attention: tasks of kind mail wait in queue default, and no live worker handles them there
}

func ExampleOps_Why() {
	ctx := context.Background()
	q, closeQueue := shop(ctx)
	defer closeQueue()

	o := ops.New(q)
	workers, err := o.Workers(ctx)
	if err != nil {
		log.Panic(err)
	}
	queues, err := o.Queues(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(workers), "workers; nobody handles", ops.Unhandled(queues, workers))
	limits, err := o.Limits(ctx, workers)
	if err != nil {
		log.Panic(err)
	}
	for _, l := range limits {
		fmt.Println(l.Owner, l.Text, "full:", l.Full(), "taken:", l.Taken())
	}
	for _, t := range ops.LongestRunning(workers) {
		fmt.Println("task", t.ID, "runs since", t.Since)
	}
	for kind, policies := range ops.KindPolicies(workers) {
		if len(policies) > 1 {
			fmt.Println("two releases differ in their policies of", kind)
		}
	}

	why, err := o.Why(ctx, 10)
	if err != nil {
		log.Panic(err)
	}
	for _, c := range why.Conditions {
		switch c := c.(type) {
		case ops.WhyDue:
			fmt.Println("due:", c.Holds(), "scheduled:", c.Scheduled)
		case ops.WhyWorker:
			fmt.Println("workers:", c.Holds())
		}
	}
	fmt.Println("runnable:", why.Runnable())
	// Output:
	// 0 workers; nobody handles [{default mail}]
	// due: false scheduled: true
	// workers: false
	// runnable: false
}

func ExampleOps_Watch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeQueue := shop(ctx)
	defer closeQueue()

	o := ops.New(q)
	time.AfterFunc(100*time.Millisecond, stop)
	err := o.Watch(ctx, 10*time.Millisecond, func(e ops.Event) error {
		if e.What == ops.Dead {
			fmt.Println("task", e.ID, "of kind", e.Kind, "is dead:", e.Error)
		}
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	// Output:
}
