package ops_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// Workers write the history once a minute, and when they stop. It has how many runs ended and how, how long they
// took, and how late they began.
func ExampleOps_History() {
	ctx, stop := context.WithCancel(context.Background())
	q, closeQueue := openQueue()
	defer closeQueue()
	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	falldue.Handle(q, greet, func(context.Context, falldue.Task[string]) error {
		stop()
		return nil
	})
	if _, err := greet.Enqueue(ctx, q, "Ada"); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}

	spans, err := ops.New(q).History(context.Background(), ops.HistoryFilter{Step: time.Hour, From: time.Now().Add(-24 * time.Hour), ByKind: true})
	if err != nil {
		log.Panic(err)
	}
	for _, s := range spans {
		fmt.Println(s.Queue, s.Kind, "done:", s.Done, "of", s.Ended(), "late by less than a minute:", s.Lag.Quantile(0.95) < time.Minute, "mean below a minute:", s.Run.Mean() < time.Minute)
		fmt.Println("runs:", s.Run.Count(), "counted:", s.Run.Add(s.Run).Count())
	}
	// Output:
	// default greet done: 1 of 1 late by less than a minute: true mean below a minute: true
	// runs: 1 counted: 2
}

// RunNow lets a task run before its time, and RunNowMany all matching ones.
func ExampleOps_RunNow() {
	ctx := context.Background()
	q, closeQueue := shop(ctx)
	defer closeQueue()
	o := ops.New(q)

	page, err := o.Tasks(ctx, ops.Filter{Kind: "mail"}, ops.ListOptions{Limit: 2})
	if err != nil {
		log.Panic(err)
	}
	if err := o.RunNow(ctx, page.Tasks[1].ID); err != nil {
		log.Panic(err)
	}
	report, err := o.RunNowMany(ctx, ops.Filter{Kind: "mail"}, ops.BulkOptions{DryRun: true, After: page.Tasks[1].ID})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("others:", report.Changed)
	// Output: others: 8
}

// Record keeps who has done what and why, and Audit lists it.
func ExampleOps_Record() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()
	o := ops.New(q)

	deed := ops.Deed{Note: falldue.Note{Who: "ann", Why: "the partner is back"}, Action: "retry", Target: "kind webhook", Changed: 2000}
	if err := o.Record(ctx, deed); err != nil {
		log.Panic(err)
	}
	list, err := o.Audit(ctx, 10)
	if err != nil {
		log.Panic(err)
	}
	for _, d := range list {
		fmt.Println(d.Who, d.Action, d.Target, d.Changed, d.Why)
	}
	// Output: ann retry kind webhook 2000 the partner is back
}
