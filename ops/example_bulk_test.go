package ops_test

import (
	"context"
	"fmt"
	"log"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// RetryMany lets tasks that died in an outage run again, at a rate that the other side can
// bear. DryRun counts them first.
func ExampleOps_RetryMany() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	charge := falldue.NewKind[string]("charge", falldue.KindConfig{})
	if _, err := charge.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"}); err != nil {
		log.Panic(err)
	}
	o := ops.New(q)
	if _, err := o.CancelMany(ctx, ops.Filter{Kind: "charge"}); err != nil {
		log.Panic(err)
	}

	filter := ops.Filter{Kind: "charge", State: falldue.StateCancelled} // without a State: dead tasks
	report, err := o.RetryMany(ctx, filter, ops.BulkOptions{DryRun: true})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(report.Changed, "would run again")

	report, err = o.RetryMany(ctx, filter, ops.BulkOptions{
		Spread: ops.Spread{Rate: 100}, // a second
		Report: func(r ops.BulkReport) { fmt.Println(r.Changed, "so far") },
	})
	if err != nil {
		// To continue: BulkOptions.After = report.After, and Spread.From = report.DueFrom.
		log.Panic(err)
	}
	fmt.Println(report.Changed, "run again, and", report.Failed, "could not be changed")
	// Output:
	// 3 would run again
	// 3 so far
	// 3 run again, and 0 could not be changed
}

// DeleteMany deletes tasks for good.
func ExampleOps_DeleteMany() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	if _, err := greet.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"}, falldue.EnqueueOptions{Key: "customer:42"}); err != nil {
		log.Panic(err)
	}
	report, err := ops.New(q).DeleteMany(ctx, ops.Filter{Key: "customer:42"})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(report.Changed, "deleted,", report.Left, "left because they run")
	// Output: 3 deleted, 0 left because they run
}
